"""Arrays and all other memory: allocation, copies, fills, host and managed memory, textures, interoperation."""

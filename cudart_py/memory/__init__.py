"""Arrays and other memory: allocation, copies, fills, host memory, managed memory and interoperation."""

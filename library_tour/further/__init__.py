"""Further exercises of the stops that matter most: each module has an easy and a hard one in FURTHER."""

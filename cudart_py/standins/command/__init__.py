"""The command `cudart-py run`, and the compiler that it starts."""

#!/bin/sh
# Hand on PTX as if it were machine code, since the simulator runs PTX: ptxas [OPTIONS] INPUT.ptx -o OUTPUT
for word in "$@"; do
    case $word in
    --version)
        "$(dirname "$0")/real/ptxas" --version || exit
        # Triton keeps compiled kernels by this text, so that those for the simulator stay apart from those for a GPU.
        exec echo "The output is PTX for the simulator of cudart-py"
        ;;
    *.ptx) input=$word ;;
    esac
    [ "$previous" = -o ] && output=$word
    previous=$word
done
exec cp "$input" "$output"

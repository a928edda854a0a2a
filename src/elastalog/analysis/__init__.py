"""What a program means: names resolved, types inferred, variables grounded, rules stratified."""

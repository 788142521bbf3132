"""`python -m quorumhash` is the command quorumhash."""

from quorumhash.cli import main

if __name__ == "__main__":
    main()

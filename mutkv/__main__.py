"""``python -m mutkv``: the command line."""

from mutkv.cli import main

if __name__ == "__main__":
    main()

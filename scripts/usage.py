"""Reads the arguments of a script. --help prints the text at its head, and an unknown argument is an error."""
import argparse


def parser(text):
    return argparse.ArgumentParser(description=text, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)


def read(text, *flags, known=()):
    """Returns the given flags, as `small` for --small, and the names, of which only `known` ones are possible."""
    reader = parser(text)
    for flag in flags:
        reader.add_argument(f"--{flag}", action="store_true")
    reader.add_argument("names", nargs="*", help=argparse.SUPPRESS)
    given = reader.parse_args()
    unknown = [it for it in given.names if it not in known]
    if unknown:
        reader.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known) or 'no names'}")
    return given

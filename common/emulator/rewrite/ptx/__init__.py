"""Translates inline PTX, NVIDIA's assembly language, to C++ that calls the functions in emulator/ptx.

assembly.py reads the asm statements and their operands, and translation.py the text of one. The other modules have
the instructions, by subject: for each, a function that writes the call.
"""

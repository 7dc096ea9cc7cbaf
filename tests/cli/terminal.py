"""Running the program with a pseudo-terminal as its standard output."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

from program import PROGRAM


def run_in_terminal(*arguments, columns=80, environment=None):
    """What appears on a terminal of so many columns; line ends as the program wrote them."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    values = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **(environment or {})}
    with subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL,
                          env=values) as process:
        os.close(slave)
        out = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            out += piece
    os.close(master)
    assert process.returncode == 0, out
    return out.decode()

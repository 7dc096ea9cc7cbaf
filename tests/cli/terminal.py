"""Running the program with a pseudo-terminal as its standard output."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

from program import PROGRAM

END = b"\0end of what the program wrote\0"


def run_in_terminal(*arguments, columns=80, environment=None):
    """What appears on a terminal of so many columns; line ends as the program wrote them.

    Some systems drop what was not read yet when the last writer closes its end. So this end stays open here, and a mark
    written after the program has ended says where its output stops.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    values = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **(environment or {})}
    process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL,
                               env=values)

    def mark_the_end():
        process.wait()
        os.write(slave, END)

    marking = threading.Thread(target=mark_the_end)
    marking.start()
    out = b""
    while not out.endswith(END):
        out += os.read(master, 65536)
    marking.join()
    os.close(slave)
    os.close(master)
    assert process.returncode == 0, out
    return out[:-len(END)].decode()

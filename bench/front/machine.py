"""What the numbers were measured on, as far as the system tells."""
import os
import platform
from pathlib import Path


def read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def processor():
    for line in (read("/proc/cpuinfo") or "").splitlines():
        if line.startswith(("model name", "Model")):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def size(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def caches():
    """Bytes of each level that holds data, of the first processor: {1: ..., 2: ..., 3: ...}."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if read(index / "type") in ("Data", "Unified") and read(index / "size"):
            found[int(read(index / "level"))] = size(read(index / "size"))
    return found


def memory_available():
    for line in (read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 4 << 30


def threads():
    """As many as this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load():
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def describe():
    sys_cpu = "/sys/devices/system/cpu/cpu0/cpufreq/"
    return {"processor": processor(), "threads": threads(), "caches": caches(), "memory_available": memory_available(),
            "system": platform.platform(), "load": load(), "governor": read(sys_cpu + "scaling_governor"),
            "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled")}

/* The limit of a durable command on this machine: append 256 bytes, wait for the disk, end. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char bytes[256];
    if (argc < 2) return 0; /* what starting a static program costs by itself */
    memset(bytes, 'x', sizeof bytes);
    int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 || write(fd, bytes, sizeof bytes) != sizeof bytes || fdatasync(fd) != 0;
}

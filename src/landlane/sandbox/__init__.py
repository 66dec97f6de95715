"""What a started command may read, write and reach: Landlock, seccomp, bubblewrap."""

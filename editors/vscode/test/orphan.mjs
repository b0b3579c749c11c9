// Setup of all tests: a worker whose vitest was killed would run on without end, and grow. (vitest takes `exit` away.)
if (process.connected) process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));

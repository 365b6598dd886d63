import Foundation

/// A process that goes on until a signal ends it, in a session of its own, as service managers and containers start it:
/// Linux shares the processors out among sessions first, so that one program of many threads does not outweigh another.
struct LongProcess {
    let identifier: Int32

    /// `POSIX_SPAWN_SETSID` of Linux's spawn.h, which Swift does not import.
    private static let newSession: Int16 = 0x80

    /// Starts a program; `nice` lowers its priority, that of its session too.
    init(_ program: String, _ arguments: [String], environment: [String: String], nice: Int) throws {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Self.newSession)
        let words = ["/usr/bin/env", "nice", "-n", "\(nice)", program] + arguments
        var argv = words.map { strdup($0) } + [nil]
        var envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var started: pid_t = 0
        let status = posix_spawn(&started, words[0], nil, &attributes, &argv, &envp)
        guard status == 0 else { throw NotStarted(program: program, status: status) }
        identifier = started
        // Kernels that do not weigh sessions have no such file.
        try? Data("\(nice)".utf8).write(to: URL(filePath: "/proc/\(started)/autogroup"))
    }

    /// Sends a signal and waits for the end.
    func end(by signal: Int32) {
        kill(identifier, signal)
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    }

    /// A program that the system did not start.
    struct NotStarted: Error, CustomStringConvertible {
        let program: String
        let status: Int32
        var description: String { "\(program) could not be started: \(String(cString: strerror(status)))." }
    }
}

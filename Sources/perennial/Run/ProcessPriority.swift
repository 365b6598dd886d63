import Foundation

/// How much a process insists on the processor.
enum ProcessPriority {
    /// What a worker asks for, as `nice` counts it: a server and PostgreSQL on the same machine go first. A lookup is waited
    /// for; a check is not, and on a machine of its own a worker is as fast as ever.
    static let worker: Int32 = 10

    /// That a number means one process, or on Linux one thread of it.
    #if canImport(Glibc)
        private static let one = __priority_which_t(PRIO_PROCESS.rawValue)
    #else
        private static let one = PRIO_PROCESS
    #endif

    /// Lowers the priority of this process and of all its threads, those to come included. A process that has less stays.
    static func lower(to nice: Int32 = worker) {
        for thread in threads where getpriority(one, thread) < nice {
            // It fails for a thread that has just ended, and for nobody else: to ask for less is always allowed.
            _ = setpriority(one, thread, nice)
        }
    }

    /// Linux counts the priority by thread, and new ones begin with that of the thread that makes them; elsewhere it is the
    /// process's.
    private static var threads: [id_t] {
        let folder = "/proc/self/task"
        guard FileManager.default.fileExists(atPath: folder),
            let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
        else { return [0] }
        return names.compactMap { id_t($0) }
    }
}

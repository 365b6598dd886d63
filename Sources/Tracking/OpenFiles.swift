import Foundation
import NIOCore

/// How many files this process may have open, its sockets among them, and what they are for.
package struct OpenFiles: Sendable, Hashable {
    /// What is enough for every connection that the server accepts, for Apple and for PostgreSQL.
    static let wanted = 8_192
    /// What is left to PostgreSQL, to files and to connections that are about to close.
    private static let othersMax = 64
    /// What each processor's event loop needs for itself.
    private static let filesOfAnEventLoop = 4

    /// How many there may be.
    package let count: Int
    private let processors: Int

    /// A limit on a machine with so many processors.
    init(count: Int, processors: Int = System.coreCount) {
        self.count = count
        self.processors = processors
    }

    /// Raises the limit of this process as far as the system lets it, at most to what is wanted; never lowers it.
    package static func raised() -> OpenFiles {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return OpenFiles(count: 1_024) }
        let wanted = min(rlim_t(wanted), limit.rlim_max)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return OpenFiles(count: Int(clamping: limit.rlim_cur))
    }

    #if canImport(Glibc)
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let resource = RLIMIT_NOFILE
    #endif

    /// Calls to Apple at the same time, at most.
    package var callsMax: Int { min(Worker.callsMax, count / 2) }

    /// Connections that the server accepts, at most.
    var connectionsMax: Int {
        min(ServerLimits.connectionsWanted, max(16, count - callsMax - Self.othersMax - overhead))
    }

    private var overhead: Int { processors * Self.filesOfAnEventLoop }
}

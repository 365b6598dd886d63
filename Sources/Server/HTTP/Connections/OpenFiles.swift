import Foundation
import NIOCore
import Tracking

/// The limit of this process's open files, which include sockets, and its division among their uses.
package struct OpenFiles: Sendable, Hashable {
    /// Enough for every connection that the server accepts, for Apple and for PostgreSQL.
    package static let wanted = 8_192
    /// Files reserved for PostgreSQL, for other files and for connections that are about to close.
    private static let othersMax = 64
    /// Files that the event loop of each processor needs.
    private static let filesOfAnEventLoop = 4

    /// The limit of open files.
    package let count: Int
    private let processors: Int

    /// Creates the limit of a machine with `processors` processors.
    init(count: Int, processors: Int = System.coreCount) {
        self.count = count
        self.processors = processors
    }

    /// Raises the limit of this process as far as the system allows, at most to `wanted`; never lowers it.
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

    /// The most calls to Apple at the same time.
    package var callsMax: Int { min(Worker.callsMax, count / 2) }

    /// The most connections that the server accepts.
    var connectionsMax: Int {
        min(ServerLimits.connectionsWanted, max(16, count - callsMax - Self.othersMax - overhead))
    }

    private var overhead: Int { processors * Self.filesOfAnEventLoop }
}

import Foundation
import Ledger

/// This process's identity, as the operator sees it.
enum ProcessIdentity {
    /// The machine's name.
    static let host = ProcessInfo.processInfo.hostName
    /// The process number.
    static let number = ProcessInfo.processInfo.processIdentifier
}

/// The registration under which a process checks single receipts, made when it is first needed.
actor CheckerIdentity {
    /// The registration; nil before the first check.
    private(set) var known: WorkerID?
    /// Whether this process sends heartbeats; one-off commands do not.
    private var sendsHeartbeats = false

    /// Notes that this process sends heartbeats from now on.
    func beginHeartbeats() { sendsHeartbeats = true }

    /// Returns the process's registration in the ledger.
    func worker(of tracker: Tracker) async throws -> WorkerID {
        if let known { return known }
        let worker = try await tracker.startWorker(singly: true)
        known = worker
        // Without one, a process that is killed within seconds would not count as gone.
        if sendsHeartbeats { try await tracker.ledger.claims.heartbeat(worker) }
        return worker
    }
}

extension Tracker {
    /// Registers this process in the ledger, with its lease and speed-up.
    func startWorker(singly: Bool = false) async throws -> WorkerID {
        try await ledger.claims.startWorker(
            host: ProcessIdentity.host, process: ProcessIdentity.number, singly: singly,
            leaseSeconds: options.leaseSeconds)
    }
}

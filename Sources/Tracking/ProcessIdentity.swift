import Foundation
import Ledger

/// How this process is known to the operator.
enum ProcessIdentity {
    /// The machine's name.
    static let host = ProcessInfo.processInfo.hostName
    /// The process number.
    static let number = ProcessInfo.processInfo.processIdentifier
}

/// The registration under which a process asks about single receipts, made when it is first needed.
actor CheckerIdentity {
    private var known: WorkerID?

    /// The process's registration in the ledger.
    func worker(of tracker: Tracker) async throws -> WorkerID {
        if let known { return known }
        let worker = try await tracker.startWorker(singly: true)
        known = worker
        return worker
    }
}

extension Tracker {
    /// Announces this process to the ledger, with the lease and the speed-up by which it works.
    func startWorker(singly: Bool = false) async throws -> WorkerID {
        try await ledger.startWorker(
            host: ProcessIdentity.host, process: ProcessIdentity.number, singly: singly,
            leaseSeconds: options.leaseSeconds, speedup: options.speedup)
    }
}

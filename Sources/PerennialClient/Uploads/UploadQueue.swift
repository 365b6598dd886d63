import Foundation

/// Receipts and transactions on their way to the server. They survive a killed process and are sent until the server has answered.
///
///     let queue = try await UploadQueue(server, storage: .folder(folder))
///     try await queue.add(Upload(receipt: receipt, of: order))
///     try await queue.run { upload, report in … }
///
/// * An upload is stored when ``add(_:)`` returns. Adding an equal one again changes nothing.
/// * ``run(_:)`` sends uploads, the oldest first, again and again by the server's advice and with full jitter.
/// * It hands each report to the handler. A final one is handed over at least once: the upload is removed only after the
///   handler has returned. A handler that throws, or a process that was killed, gets it again, with a newer answer.
/// * There is no last attempt. An upload ends by the server's answer or by ``discard(_:)``, never by the clock.
public actor UploadQueue {
    /// What happens to an entry. Only a waiting one may be sent.
    private enum Phase { case saving, waiting, sending, handing, removing }

    private struct Entry {
        let upload: Upload
        let number: Int
        var phase: Phase
        var attempts = 0
        /// When it is sent, in seconds of the machine's uptime.
        var dueAt: Double = 0
        /// Whether it was added once more while the handler had its answer, which is older than that.
        var wasAddedAgain = false
    }

    private enum Awakening { case sent, rung, due(Double) }

    private let server: PerennialServer
    private let storage: UploadStorage
    private let limits: UploadLimits
    private var entries: [String: Entry] = [:]
    private var numbers = 0
    /// When the newest upload was added, so that the order survives a restart.
    private var newestQueuedAt = Date.distantPast
    /// Wakes a run; nil while there is none.
    private var bell: AsyncStream<Void>.Continuation?

    /// The names of stored uploads that could not be read when the queue was opened; they were set aside.
    public nonisolated let unreadable: [String]

    /// Opens a queue with what its storage holds. Throws `storage` where that cannot be read.
    public init(_ server: PerennialServer, storage: UploadStorage, limits: UploadLimits = UploadLimits()) async throws {
        self.server = server
        self.storage = storage
        self.limits = limits
        let found = try await Self.storing { try await storage.load() }
        let readable = found.compactMap(StoredUpload.init(entry:))
        let ids = Set(readable.map(\.upload.id))
        unreadable = found.map(\.id).filter { !ids.contains($0) }
        for id in unreadable { try await Self.storing { try await storage.setAside(id) } }
        for stored in readable.sorted(by: { ($0.queuedAt, $0.upload.id) < ($1.queuedAt, $1.upload.id) }) {
            numbers += 1
            entries[stored.upload.id] = Entry(upload: stored.upload, number: numbers, phase: .waiting)
            newestQueuedAt = stored.queuedAt
        }
    }

    /// The uploads in the queue, the oldest first.
    public var uploads: [Upload] { entries.values.sorted { $0.number < $1.number }.map(\.upload) }

    /// The number of uploads in the queue.
    public var count: Int { entries.count }

    /// Stores an upload, which a run then sends. An equal one that is in the queue already stays the only one.
    ///
    /// Throws `invalid` for one that no server takes, `full` above a limit, `storage` where it cannot be stored.
    public func add(_ upload: Upload) async throws {
        try upload.requireUsable()
        guard upload.subject.text.utf8.count <= limits.receiptBytesMax else {
            throw PerennialError(.invalid, "A receipt has at most \(limits.receiptBytesMax) bytes in Base64.")
        }
        let id = upload.id
        while let phase = entries[id]?.phase {
            switch phase {
            // Its answer is still to come.
            case .waiting, .sending: return
            case .handing:
                entries[id]?.wasAddedAgain = true
                return
            // It is stored, or is stored no more, in a moment.
            case .saving, .removing: try await Task.sleep(nanoseconds: 1_000_000)
            }
        }
        let bytes = entries.values.reduce(upload.subject.text.utf8.count) { $0 + $1.upload.subject.text.utf8.count }
        guard entries.count < limits.entriesMax, bytes <= limits.totalBytesMax else {
            throw PerennialError(.full, "\(entries.count) uploads wait already; the server has to answer some first.")
        }
        numbers += 1
        entries[id] = Entry(upload: upload, number: numbers, phase: .saving)
        // Stored instants are of whole milliseconds, and the clock of a device may be set back.
        newestQueuedAt = max(Date(), newestQueuedAt.addingTimeInterval(0.002))
        do {
            let entry = try StoredUpload(queuedAt: newestQueuedAt, upload: upload).entry
            try await Self.storing { [storage] in try await storage.save(entry) }
        } catch {
            entries[id] = nil
            throw error
        }
        entries[id]?.phase = .waiting
        bell?.yield()
    }

    /// Removes an upload that the app no longer wants. The server may have it already. One that is being sent stays.
    public func discard(_ upload: Upload) async throws {
        guard entries[upload.id]?.phase == .waiting else { return }
        try await remove(upload.id)
    }

    /// Sends everything that waits at once, whatever its back-off: when the network is back, for example.
    public func retryNow() {
        for id in entries.keys { entries[id]?.dueAt = 0 }
        bell?.yield()
    }

    /// Sends uploads until its task is cancelled, and hands each report to the handler. There is one run at a time.
    ///
    /// Throws `CancellationError`, or `invalid` when the queue runs already.
    /// - Parameter handler: Gets an upload and what became of it; see ``UploadReport``. It may be called for several
    ///   uploads at once, and more than once with the same final report.
    public func run(_ handler: @escaping @Sendable (Upload, UploadReport) async throws -> Void) async throws {
        guard bell == nil else { throw PerennialError(.invalid, "The queue runs already.") }
        let (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.bell = bell
        defer { self.bell = nil }
        try await withThrowingTaskGroup(of: Awakening.self) { group in
            var (sending, isListening, alarmAt) = (0, false, Double.infinity)
            while true {
                try Task.checkCancellation()
                while sending < max(1, limits.sendingMax), let id = takeDue() {
                    sending += 1
                    group.addTask {
                        try await self.attempt(id, handler)
                        return .sent
                    }
                }
                if !isListening {
                    isListening = true
                    group.addTask {
                        for await _ in rings { break }
                        return .rung
                    }
                }
                if sending < max(1, limits.sendingMax), let next = nextDue, next < alarmAt {
                    alarmAt = next
                    group.addTask {
                        try await Self.sleep(until: next)
                        return .due(next)
                    }
                }
                switch try await group.next() {
                case .sent: sending -= 1
                case .rung, nil: isListening = false
                case .due(let instant): alarmAt = instant == alarmAt ? .infinity : alarmAt
                }
            }
        }
    }
}

extension UploadQueue {
    /// Sends an entry once and hands the report over; removes the entry where that was the last of it.
    private func attempt(_ id: String, _ handler: @Sendable (Upload, UploadReport) async throws -> Void) async throws {
        guard let entry = entries[id] else { return }
        var wait = limits.retrySeconds(after: entry.attempts, advised: nil)
        do {
            let report = UploadReport(try await sent(entry.upload), to: entry.upload) {
                limits.retrySeconds(after: entry.attempts, advised: $0)
            }
            wait = report.againAfterSeconds ?? wait
            entries[id]?.phase = .handing
            try await handler(entry.upload, report)
            if report.isFinal, entries[id]?.wasAddedAgain == false { return try await remove(id) }
        } catch let error as PerennialError where error.cause == .storage && !Task.isCancelled {
            try? await handler(entry.upload, .failing(error, againAfterSeconds: wait))
        } catch {
            // A handler that failed gets the report again.
            guard !Task.isCancelled else {
                putBack(id, afterSeconds: 0)
                throw CancellationError()
            }
        }
        putBack(id, afterSeconds: wait)
    }

    /// Sends an upload to the server; its errors are a result too.
    private func sent(_ upload: Upload) async throws -> Result<UploadAnswer, PerennialError> {
        do {
            return .success(try await server.send(upload))
        } catch let error as PerennialError {
            return .failure(error)
        }
    }

    /// Removes an upload from the storage and then from the queue.
    private func remove(_ id: String) async throws {
        // It may be sent again only where it may have been before: not while the handler learns of a failure.
        let before = entries[id]?.phase ?? .waiting
        entries[id]?.phase = .removing
        do {
            try await Self.storing { [storage] in try await storage.remove(id) }
        } catch {
            entries[id]?.phase = before
            throw error
        }
        entries[id] = nil
    }

    /// Lets an entry wait for its next attempt.
    private func putBack(_ id: String, afterSeconds seconds: Double) {
        entries[id]?.phase = .waiting
        entries[id]?.wasAddedAgain = false
        entries[id]?.dueAt = Self.uptime + seconds
    }

    /// Takes the oldest entry that is due, for an attempt.
    private func takeDue() -> String? {
        let now = Self.uptime
        let due = entries.filter { $0.value.phase == .waiting && $0.value.dueAt <= now }
        guard let id = due.min(by: { $0.value.number < $1.value.number })?.key else { return nil }
        entries[id]?.phase = .sending
        entries[id]?.attempts += 1
        return id
    }

    /// When the next entry is due, in seconds of the machine's uptime.
    private var nextDue: Double? { entries.values.filter { $0.phase == .waiting }.map(\.dueAt).min() }

    private static var uptime: Double { ProcessInfo.processInfo.systemUptime }

    private static func sleep(until instant: Double) async throws {
        let seconds = max(0, instant - uptime)
        try await Task.sleep(nanoseconds: UInt64(seconds * 1e9))
    }

    /// Runs a storage's closure; its errors become `storage`.
    private static func storing<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
        do {
            return try await work()
        } catch {
            throw PerennialError(.storage, "The storage of the upload queue failed: \(error)")
        }
    }
}

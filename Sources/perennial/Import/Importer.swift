import Foundation
import Ledger
import Postgres
import Tracking

/// Stores the receipts of a file of lines in batches; storing is idempotent, so an import can always be run again.
struct Importer {
    /// The longest line, in bytes.
    static let lineBytesMax = 12 << 20
    /// Receipts stored at once.
    static let batchReceiptsMax = 500
    /// Bytes of lines held at once; a batch of large receipts is cut short.
    static let batchBytesMax = 64 << 20
    /// How often a batch is tried again while the database has trouble.
    static let triesMax = 5

    let tracker: Tracker
    /// The first line to store; those before it are skipped.
    let fromLine: Int

    private var batch: [(line: Int, submission: Submission)] = []
    private var batchBytes = 0
    private(set) var progress: ImportProgress
    private var shown = ProgressLine()
    private let decoder = JSONDecoder()

    init(tracker: Tracker, fromLine: Int, bytesTotal: Int?) {
        self.tracker = tracker
        self.fromLine = fromLine
        progress = ImportProgress(bytesTotal: bytesTotal)
    }

    /// Reads and stores every line. Throws when the file cannot be read or the database stays away; the sentence says
    /// where to go on.
    mutating func run(_ reader: consuming LineReader) async throws {
        defer { shown.clear() }
        while let line = try await reader.next() {
            take(line)
            if batch.count >= Self.batchReceiptsMax || batchBytes >= Self.batchBytesMax { try await storeBatch() }
            shown.show(progress)
        }
        try await storeBatch()
    }

    private mutating func take(_ line: Line) {
        progress.line = line.number
        progress.bytesDone = line.endOffset
        guard line.number >= fromLine else { return }
        switch line.content {
        case .tooLong: note(line.number, "the line has more than \(Self.lineBytesMax) bytes")
        case .bytes(let bytes):
            guard bytes.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) else { return }
            do {
                batch.append((line.number, try ImportLine.submission(in: bytes, with: decoder)))
                batchBytes += bytes.count
            } catch {
                note(line.number, Ending.sentence(for: error))
            }
        }
    }

    private mutating func storeBatch() async throws {
        guard let first = batch.first?.line else { return }
        let results = try await stored(batch.map(\.submission), from: first)
        for (entry, result) in zip(batch, results) {
            switch result {
            case .success(let upload):
                if upload.isNew { progress.new += 1 } else { progress.known += 1 }
            case .failure(let error): note(entry.line, Ending.sentence(for: error))
            }
        }
        batch.removeAll(keepingCapacity: true)
        batchBytes = 0
    }

    /// A short trouble of the database is waited out; nothing is stored twice.
    private func stored(_ submissions: [Submission], from line: Int) async throws -> [Result<StoredUpload, any Error>] {
        for attempt in 1... {
            do {
                return try await tracker.store(submissions)
            } catch let error as DatabaseError {
                let mayPass =
                    switch error.disposition {
                    case .retry: true
                    case .reject, .alarm: error.kind == .commitUnknown
                    }
                guard mayPass, attempt < Self.triesMax else {
                    throw Failure(
                        "The import stopped at line \(line): \(error.message) Go on later with --from-line \(line).")
                }
                shown.say("The database has trouble, trying again: \(error.message)")
                await pause(seconds: attempt)
            }
        }
        return []
    }

    private mutating func note(_ line: Int, _ reason: String) {
        progress.bad += 1
        shown.say("line \(line): \(reason)")
    }
}

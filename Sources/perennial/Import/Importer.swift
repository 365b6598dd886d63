import Foundation
import Ledger
import Postgres
import Tracking

/// A writer of the receipts in a file of lines. It reads one block while it parses and stores others. Storing is
/// idempotent, so an import can always be run again.
struct Importer: Sendable {
    /// The most blocks parsed or stored at once; with the one being read they bound the memory.
    static let blocksMax = 4
    /// The most tries of a block while the database fails.
    static let triesMax = 5
    /// The interval between forecasts, in seconds: counting the waiting receipts reads an index.
    static let forecastSeconds = 120.0

    let tracker: Tracker
    /// The import in the ledger, where the file can be read from the middle; nil for standard input and pipes.
    let ongoing: Import?
    /// The first line to store; those before it are skipped.
    let fromLine: Int
    let limits: LineLimits

    init(tracker: Tracker, ongoing: Import?, fromLine: Int, limits: LineLimits = LineLimits()) {
        self.tracker = tracker
        self.ongoing = ongoing
        self.fromLine = fromLine
        self.limits = limits
    }

    /// Stores every line and reports each block to `progress` in the order of the file. Throws when the file cannot be
    /// read or the database stays unreachable.
    func run(_ reader: BlockReader, progress: (StoredBlock) async throws -> Void) async throws {
        var reader = reader
        try await withThrowingTaskGroup(of: (place: Int, block: StoredBlock).self) { tasks in
            var begun = 0
            var line = BlocksInOrder()
            while let block = try await reader.next() {
                if begun - line.ended >= Self.blocksMax, let ended = try await tasks.next() {
                    for block in line.end(ended.block, at: ended.place) { try await progress(block) }
                }
                let place = begun
                begun += 1
                tasks.addTask { (place, try await store(block)) }
            }
            for try await ended in tasks {
                for block in line.end(ended.block, at: ended.place) { try await progress(block) }
            }
        }
    }

    private func store(_ block: LineBlock) async throws -> StoredBlock {
        let understood = ParsedBlock(block, fromLine: fromLine, lineBytesMax: limits.lineBytesMax)
        return StoredBlock(block, understood, try await stored(understood, of: block))
    }

    /// Stores a block. Retries after a short failure of the database; nothing is stored twice.
    private func stored(
        _ understood: ParsedBlock, of block: LineBlock
    ) async throws -> [Result<StoredUpload, any Error>] {
        var attempt = 1
        while true {
            do {
                return try await tracker.store(understood.submissions, completing: part(block, understood))
            } catch let error as DatabaseError {
                guard error.mayPass, attempt < Self.triesMax else { throw error }
                try await Task.sleep(for: .seconds(attempt))
                attempt += 1
            }
        }
    }

    /// Returns the part of the file that is then done; nil when lines were skipped, because they may not be stored.
    private func part(_ block: LineBlock, _ understood: ParsedBlock) -> ImportedPart? {
        guard let ongoing, fromLine <= block.firstNumber else { return nil }
        return ImportedPart(
            of: ongoing, lines: Int64(block.numbers.lowerBound)..<Int64(block.numbers.upperBound),
            bytes: Int64(block.offsets.lowerBound)..<Int64(block.offsets.upperBound),
            badLines: Int64(understood.bad.count))
    }
}

/// Blocks that end in any order and are reported in the order of the file.
private struct BlocksInOrder {
    private var early: [Int: StoredBlock] = [:]
    /// The number of blocks that were returned.
    private var returned = 0
    /// The number of ended blocks.
    private(set) var ended = 0

    /// Records the end of a block, and returns the blocks whose turn it is now.
    mutating func end(_ block: StoredBlock, at place: Int) -> [StoredBlock] {
        ended += 1
        early[place] = block
        var next: [StoredBlock] = []
        while let block = early.removeValue(forKey: returned) {
            next.append(block)
            returned += 1
        }
        return next
    }
}

extension DatabaseError {
    /// Whether the same statement may succeed a little later.
    fileprivate var mayPass: Bool {
        switch disposition {
        case .retry: true
        case .reject, .alarm: kind == .commitUnknown
        }
    }
}

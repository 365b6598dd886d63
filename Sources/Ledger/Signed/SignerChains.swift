import Crypto
import Foundation
import Postgres
import SQL
import Synchronization

extension SubscriptionLedger {
    /// Returns the numbers of headers of signed texts, and stores those that are new.
    ///
    /// Only headers of verified texts come here: Apple signs with a few keys at a time.
    package func chainNumbers(of headers: Set<String>) async throws -> [String: Int32] {
        let known = knownChains.numbers(of: headers)
        let unknown = headers.filter { known[$0] == nil }
        guard !unknown.isEmpty else { return known }
        let digests = unknown.map { (header: $0, digest: Array(SHA256.hash(data: Data($0.utf8)))) }
            .sorted { $0.digest.lexicographicallyPrecedes($1.digest) }
        let keys = Parameter.byteas(digests.map(\.digest))
        var rows = try await query(Queries.findChains, [keys])
        if rows.count < unknown.count {
            _ = try await write(Queries.storeChains, [.texts(digests.map(\.header)), keys])
            rows = try await query(Queries.findChains, [keys])
        }
        let found = try Dictionary(rows.map { (try $0.text("header"), try $0.int4("chain_id")) }) { first, _ in first }
        knownChains.remember(found)
        return known.merging(found) { first, _ in first }
    }

    /// Returns the headers with some numbers; an unknown number has none.
    package func chainHeaders(numbered numbers: Set<Int32>) async throws -> [Int32: String] {
        let rows = try await query(Queries.readChains, [.int4s(numbers.sorted())])
        return try Dictionary(rows.map { (try $0.int4("chain_id"), try $0.text("header")) }) { first, _ in first }
    }
}

/// A bounded memory of the numbers of headers.
final class KnownChains: Sendable {
    /// The most headers; each has some 4,400 bytes.
    static let headersMax = 256

    private let memory = Mutex<[String: Int32]>([:])

    /// Returns the numbers of the headers that are known.
    func numbers(of headers: Set<String>) -> [String: Int32] {
        memory.withLock { memory in memory.filter { headers.contains($0.key) } }
    }

    /// Remembers numbers. A full memory begins anew: Apple has few headers.
    func remember(_ numbers: [String: Int32]) {
        memory.withLock { memory in
            memory.merge(numbers) { first, _ in first }
            if memory.count > Self.headersMax { memory = numbers }
        }
    }
}

import Ledger
import Synchronization

/// A cache of recently used API keys, so that a lookup does not query the database for its key each time.
///
/// A revoked key is accepted for at most `secondsMax` seconds more. Unknown keys are not cached, because a stream of
/// invented keys must not evict the real ones. Keys are stored by digest: nothing here compares or keeps a secret.
final class KeyCache: Sendable {
    /// How long a key is accepted without another query, in seconds.
    static let secondsMax = 10
    /// The most keys in the cache.
    static let entriesMax = 1000

    private let find: @Sendable (String) async throws -> APIKey?
    private let now: @Sendable () -> ContinuousClock.Instant
    private let known = Mutex(TTLCache<KeyDigest, APIKey>(entriesMax: entriesMax, seconds: secondsMax))

    /// Creates a cache that calls `find` for the live key with a secret.
    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        find: @escaping @Sendable (String) async throws -> APIKey?
    ) {
        self.now = now
        self.find = find
    }

    /// Returns the live key with the given secret, or nil.
    func key(withSecret secret: String) async throws -> APIKey? {
        if let key = knownKey(withSecret: secret) { return key }
        // The time is taken before the query, because the database's answer may be old when it arrives.
        let asked = now()
        guard Self.couldBeSecret(secret), let key = try await find(secret) else { return nil }
        known.withLock { $0.keep(key, for: KeyDigest(ofSecret: secret), at: asked) }
        return key
    }

    /// Returns the live key with the given secret if it is cached, or nil.
    private func knownKey(withSecret secret: String) -> APIKey? {
        guard Self.couldBeSecret(secret) else { return nil }
        let (digest, now) = (KeyDigest(ofSecret: secret), now())
        return known.withLock { $0.value(for: digest, at: now) }
    }

    /// Returns whether the text has the form of our keys. Any other text is refused without a query.
    private static func couldBeSecret(_ text: String) -> Bool {
        let prefix = "perennial_"
        guard text.hasPrefix(prefix), text.utf8.count == prefix.utf8.count + 64 else { return false }
        return text.utf8.dropFirst(prefix.utf8.count).allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
    }
}

import Ledger
import Synchronization

/// The API keys seen lately, so that a lookup does not ask the database for its key each time.
///
/// A revoked key is accepted for at most `secondsMax` more. Unknown keys are not remembered: a stream of invented ones
/// must not push the real ones out. Keys are known by their digests: nothing here compares, or keeps, what is secret.
final class KeyRing: Sendable {
    /// How long a key is believed without asking again.
    static let secondsMax = 10
    /// How many keys are remembered.
    static let entriesMax = 1000

    private let find: @Sendable (String) async throws -> APIKey?
    private let now: @Sendable () -> ContinuousClock.Instant
    private let known = Mutex(ShortMemory<KeyDigest, APIKey>(entriesMax: entriesMax, seconds: secondsMax))

    /// A ring that asks `find` for the live key with a secret.
    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        find: @escaping @Sendable (String) async throws -> APIKey?
    ) {
        self.now = now
        self.find = find
    }

    /// The live key with the given secret, or nil.
    func key(withSecret secret: String) async throws -> APIKey? {
        if let key = knownKey(withSecret: secret) { return key }
        // The time is taken before asking: what the database said may be old by the time it arrives.
        let asked = now()
        guard Self.couldBeSecret(secret), let key = try await find(secret) else { return nil }
        known.withLock { $0.keep(key, for: KeyDigest(ofSecret: secret), at: asked) }
        return key
    }

    /// The same, where it is known without asking.
    func knownKey(withSecret secret: String) -> APIKey? {
        guard Self.couldBeSecret(secret) else { return nil }
        let (digest, now) = (KeyDigest(ofSecret: secret), now())
        return known.withLock { $0.value(for: digest, at: now) }
    }

    /// Whether the text has the form of our keys; anything else is refused without asking the database.
    private static func couldBeSecret(_ text: String) -> Bool {
        let prefix = "perennial_"
        guard text.hasPrefix(prefix), text.utf8.count == prefix.utf8.count + 64 else { return false }
        return text.utf8.dropFirst(prefix.utf8.count).allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
    }
}

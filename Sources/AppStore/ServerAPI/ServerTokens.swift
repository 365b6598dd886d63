import Foundation
import Synchronization

/// The bearer tokens of a process, and where each key was accepted.
final class ServerTokens: Sendable {
    /// The most keys that are remembered; there is one for each app.
    static let keysMax = 1_024

    private struct Memory {
        var tokens: [ServerKey: ServerToken] = [:]
        /// Where Apple accepted the key, by the time of the first acceptance.
        var accepted: [ServerKey: Set<Endpoint>] = [:]
    }

    private let memory = Mutex(Memory())

    /// Returns a token that is valid for a while; makes one where there is none, or where `isFresh`.
    func token(of key: ServerKey, isFresh: Bool = false, at now: Date = Date()) throws -> String {
        let known = memory.withLock { $0.tokens[key] }
        if !isFresh, let known, known.endsAt.timeIntervalSince(now) > ServerToken.renewalSeconds { return known.text }
        let token = try key.token(at: now)
        memory.withLock { memory in
            if memory.tokens.count >= Self.keysMax { memory.tokens = [:] }
            memory.tokens[key] = token
        }
        return token.text
    }

    /// Remembers that Apple accepted a key.
    func accept(_ key: ServerKey, in environment: Endpoint) {
        memory.withLock { memory in
            if memory.accepted.count >= Self.keysMax { memory.accepted = [:] }
            memory.accepted[key, default: []].insert(environment)
        }
    }

    /// Returns whether Apple accepted a key before.
    func isAccepted(_ key: ServerKey, in environment: Endpoint) -> Bool {
        memory.withLock { $0.accepted[key]?.contains(environment) ?? false }
    }
}

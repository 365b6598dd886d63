import AppStore
import Ledger
import Subscriptions
import Synchronization

/// The claims that this process saw and does not read, until they are counted in the ledger. A name is counted at once when
/// it is first seen, then once a minute.
final class UnreadTally: Sendable {
    private struct State {
        var seen: [Int32: [String: SeenClaim]] = [:]
        var known: [Int32: Set<String>] = [:]
        var countedAt: ContinuousClock.Instant?
    }

    private static let apart = Duration.seconds(60)
    private let state = Mutex(State())

    /// Adds what texts state; returns what is to be counted now, by app.
    func add(
        _ claims: [SeenClaim], of app: Int32, at now: ContinuousClock.Instant = .now
    ) -> [Int32: [SeenClaim]] {
        guard !claims.isEmpty else { return [:] }
        return state.withLock { state in
            var isNew = false
            for claim in claims {
                if state.known[app]?.contains(claim.name) ?? false {
                    state.seen[app, default: [:]][claim.name, default: claim.unseen].texts += claim.texts
                } else if state.known[app]?.count ?? 0 < Int(LedgerIntake.unreadClaimsMax) {
                    state.known[app, default: []].insert(claim.name)
                    state.seen[app, default: [:]][claim.name] = claim
                    isNew = true
                }
            }
            guard isNew || state.countedAt.map({ now - $0 >= Self.apart }) ?? true else { return [:] }
            defer { (state.seen, state.countedAt) = ([:], now) }
            return state.seen.mapValues { Array($0.values) }
        }
    }
}

extension Tracker {
    /// Counts the claims of the Server API's texts that this version does not read.
    func noteUnread(in answers: [Checked]) async {
        for answer in answers {
            guard let contents = answer.answer.server?.contents else { continue }
            let claims = contents.texts.flatMap { text in
                let kind: UnreadClaim.Kind = text.path.hasSuffix("signedRenewalInfo") ? .renewal : .transaction
                return SeenClaim.all(kind, payload: text.payload, text: text.compact)
            }
            await noteUnread(claims, of: answer.claim.app.id)
        }
    }

    /// Counts claims that this version does not read.
    func noteUnread(_ claims: [SeenClaim], of app: Int32) async {
        for (app, claims) in unread.add(claims, of: app) {
            await attempt("count the claims that are not read") {
                try await ledger.intake.countUnread(claims, of: app)
            }
        }
    }
}

extension SeenClaim {
    /// Returns the claims of a verified text that are not read, with the text as their example.
    static func all(_ kind: UnreadClaim.Kind, payload: [UInt8]?, text: [UInt8]) -> [SeenClaim] {
        guard let payload else { return [] }
        let unread = UnreadClaim.all(in: kind, payload: payload)
        guard !unread.isEmpty else { return [] }
        let subject =
            SignedTransaction(payload: payload)?.originalTransactionID
            ?? SignedRenewal(payload: payload)?.originalTransactionID
        return unread.map {
            SeenClaim(
                name: $0.name.storable, isUnreadable: $0.isUnreadable, example: String(decoding: text, as: UTF8.self),
                subject: subject.map { OriginalTransactionID($0.storable) })
        }
    }

    fileprivate var unseen: SeenClaim {
        var claim = self
        claim.texts = 0
        return claim
    }
}

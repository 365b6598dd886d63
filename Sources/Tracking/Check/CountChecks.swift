import AppStore
import Logging
import Postgres
import SQL
package import Subscriptions
import Synchronization

/// The results of checks. Each check is one of: equal, changed, refused, no answer, or failed.
struct CheckCounts: Sendable, Hashable {
    var checks = 0
    /// Checks whose answer had nothing new.
    var equal = 0
    var changed = 0
    var events = 0
    /// Checks of a receipt that Apple does not vouch for.
    var refused = 0
    /// Checks without an answer, with one that says nothing about the receipt, or refused during an incident.
    var noAnswer = 0
    /// Checks whose answer could not be written.
    var failed = 0

    static func += (left: inout CheckCounts, right: CheckCounts) {
        for field in fields.values { left[keyPath: field] += right[keyPath: field] }
    }

    /// The counts as fields of a log line.
    var metadata: Logger.Metadata { Self.fields.mapValues { "\(self[keyPath: $0])" } }

    private static let fields: [String: any WritableKeyPath<CheckCounts, Int> & Sendable] = [
        "checks": \.checks, "equal": \.equal, "changed": \.changed, "events": \.events, "refused": \.refused,
        "no_answer": \.noAnswer, "failed": \.failed,
    ]
}

extension SettledBatch {
    func counts(of answers: Int) -> CheckCounts {
        var counts = CheckCounts()
        counts.checks = answers
        counts.failed = answers - receipts
        counts.events = events.count
        for receipt in settled {
            switch receipt.outcome {
            case .verified: if receipt.hasEvents { counts.changed += 1 }
            case .rejected: counts.refused += 1
            case .indeterminate: counts.noAnswer += 1
            }
        }
        counts.equal = receipts - counts.changed - counts.refused - counts.noAnswer
        return counts
    }
}

/// The checks of a process since its last log line about them.
final class CheckCounting: Sendable {
    private let counts = Mutex(CheckCounts())

    func add(_ more: CheckCounts) { counts.withLock { $0 += more } }

    /// Returns the counts since the last call, and resets them.
    func take() -> CheckCounts { counts.withLock { exchange(&$0, with: CheckCounts()) } }
}

/// A count of Apple's answers per app until they are written to the database.
final class AnswerTally: Sendable {
    private let counts = Mutex<[Int32: AnswerCount]>([:])

    func count(_ answers: [Checked]) {
        let found = answers.map { (app: $0.claim.app.id, outcome: $0.outcome) }
        counts.withLock { counts in
            for (app, outcome) in found {
                switch outcome {
                case .verified: counts[app, default: AnswerCount()].verified += 1
                case .rejected: counts[app, default: AnswerCount()].rejected += 1
                case .indeterminate: counts[app, default: AnswerCount()].failed += 1
                }
            }
        }
    }

    /// Returns the counts since the last call, and resets them.
    func take() -> [Int32: AnswerCount] { counts.withLock { exchange(&$0, with: [:]) } }
}

extension Checked {
    /// For most answers the fingerprint shows the outcome, so that they are not read twice.
    fileprivate var outcome: Outcome { fingerprint == nil ? finding.outcome : .verified }
}

extension Tracker {
    /// Writes the counts to the database. Counts that cannot be written are lost: they are statistics, not a record.
    func writeTally() async {
        await attempt("count Apple's answers") { try await ledger.settlements.addChecks(tally.take()) }
    }
}

/// Apple's answers about an app since the last count.
package struct AnswerCount: Sendable, Hashable {
    package var verified: Int64 = 0
    package var rejected: Int64 = 0
    /// Checks without a usable answer.
    package var failed: Int64 = 0
}

extension LedgerSettlements {
    /// Adds answers to the counts of the current hour, per app.
    package func addChecks(_ counts: [Int32: AnswerCount]) async throws {
        guard !counts.isEmpty else { return }
        let sorted = counts.sorted { $0.key < $1.key }
        _ = try await write(
            Queries.addChecks,
            .int4s(sorted.map(\.key)), .int8s(sorted.map(\.value.verified)), .int8s(sorted.map(\.value.rejected)),
            .int8s(sorted.map(\.value.failed)))
    }
}

/// The claims that this process saw and does not read. A name is counted when it is first seen, then once a minute.
final class UnreadTally: Sendable {
    private struct State {
        var seen: [Int32: [String: SeenClaim]] = [:]
        var known: [Int32: Set<String>] = [:]
        var countedAt: ContinuousClock.Instant?
    }

    private static let apart = Duration.seconds(60)
    private let state = Mutex(State())

    /// Adds what texts state; returns what is to be counted now, by app.
    func add(_ claims: [SeenClaim], of app: Int32, at now: ContinuousClock.Instant = .now) -> [Int32: [SeenClaim]] {
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

    func noteUnread(_ claims: [SeenClaim], of app: Int32) async {
        for (app, claims) in unread.add(claims, of: app) {
            await attempt("count the claims that are not read") {
                try await ledger.intake.countUnread(claims, of: app)
            }
        }
    }
}

/// A claim of Apple's signed texts that is not read, as one process saw it since it last counted.
package struct SeenClaim: Sendable, Hashable {
    /// The kind of text with the place of the claim; a word that is not known follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool
    /// How many texts stated it.
    package var texts = 1
    /// One of them, as Apple signed it.
    package let example: String?
    /// The subscription or purchase that the example is about.
    package let subject: OriginalTransactionID?
    /// The account token in the example, in lower case.
    package let accountToken: String?

    /// Returns the claims of a verified text that are not read, with the text as their example. `payloads` say what it
    /// is about: its own one, or those of the texts within it.
    static func all(
        _ kind: UnreadClaim.Kind, payload: [UInt8]?, text: [UInt8], about payloads: [[UInt8]?]? = nil
    ) -> [SeenClaim] {
        guard let payload else { return [] }
        let unread = UnreadClaim.all(in: kind, payload: payload)
        guard !unread.isEmpty else { return [] }
        let about = (payloads ?? [payload]).compactMap(\.self)
        let transaction = about.lazy.compactMap { SignedSubject(payload: $0) }.first
        let renewal = about.lazy.compactMap { SignedRenewal(payload: $0) }.first
        let subject = transaction?.originalTransactionID ?? renewal?.row.originalTransactionID
        let token = transaction?.appAccountToken ?? renewal?.appAccountToken
        return unread.map {
            SeenClaim(
                name: $0.name.storable, isUnreadable: $0.isUnreadable, example: String(decoding: text, as: UTF8.self),
                subject: subject, accountToken: token?.lowercased())
        }
    }

    fileprivate var unseen: SeenClaim {
        var claim = self
        claim.texts = 0
        return claim
    }
}

/// A claim of Apple's signed texts that is not read.
package struct CountedClaim: Sendable, Hashable {
    package let bundleID: BundleID
    /// The kind of text with the place of the claim; a word that is not known follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool
    /// How many texts stated it, each time that one was read.
    package let texts: Int64
    package let firstSeenAt: Instant
    package let lastSeenAt: Instant
}

extension LedgerIntake {
    /// The most names of claims that are kept of an app.
    package static let unreadClaimsMax: Int32 = 200
    /// The longest text that is kept as an example, in bytes.
    static let exampleBytesMax = 64 << 10
    /// Days after which a claim that no text states any more is forgotten.
    static let unreadClaimDays: Int32 = 30

    /// Counts claims that this program does not read.
    package func countUnread(_ claims: [SeenClaim], of app: Int32) async throws {
        guard !claims.isEmpty else { return }
        _ = try await write(
            Queries.countUnreadClaims,
            .int4(app), .texts(claims.map(\.name)), .bools(claims.map(\.isUnreadable)),
            .int8s(claims.map { Int64($0.texts) }),
            .texts(claims.map { $0.example.flatMap { $0.utf8.count <= Self.exampleBytesMax ? $0 : nil } }),
            .texts(claims.map { $0.subject?.text }), .int4(Self.unreadClaimsMax),
            .texts(claims.map(\.accountToken)))
    }

    /// Returns the claims that are not read, of one app or of all, the most frequent first.
    package func unreadClaims(of bundleID: BundleID? = nil) async throws -> [CountedClaim] {
        var app: Int32?
        if let bundleID { app = try await ledger.apps.app(bundleID).id }
        return try await query(Queries.readUnreadClaims, .int4(Self.unreadClaimsMax * 5), .int4(app), .text(nil))
            .map(CountedClaim.init(row:))
    }

    /// Returns a text that states an unread claim, if one is kept. Throws `notFound` for a claim that was not seen.
    package func unreadExample(of name: String, app bundleID: BundleID) async throws -> String? {
        let app = try await ledger.apps.app(bundleID)
        let found = try await query(Queries.readUnreadClaims, .int4(1), .int4(app.id), .text(name))
        guard let row = found.first else {
            throw LedgerError(
                .notFound,
                "No text about \(bundleID) stated \(name); `perennial app claims \(bundleID)` lists what is not read.")
        }
        return try row.textIfPresent("example")
    }

    /// Forgets what no text states any more.
    package func forgetUnreadClaims() async throws {
        _ = try await write(Queries.forgetUnreadClaims, .int4(Self.unreadClaimDays))
    }
}

extension CountedClaim {
    fileprivate init(row: Row) throws {
        bundleID = BundleID(try row.text("bundle_id"))
        name = try row.text("name")
        isUnreadable = try row.bool("is_unreadable")
        texts = try row.int8("texts")
        firstSeenAt = try row.instant("first_seen_at")
        lastSeenAt = try row.instant("last_seen_at")
    }
}

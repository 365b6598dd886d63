package import AppStore
package import Subscriptions

/// The meaning of one answer of verifyReceipt at an instant, with the reasons: no database, no network.
package struct AnswerExplanation: Sendable {
    /// One subscription of the answer.
    package struct ExplainedSubscription: Sendable {
        /// Its facts and timeline.
        package let state: SubscriptionState
        package let groupID: SubscriptionGroupID?
        /// Its state at the instant, with the reasons.
        package let verdict: Verdict

        package init(state: SubscriptionState, groupID: SubscriptionGroupID?, verdict: Verdict) {
            (self.state, self.groupID, self.verdict) = (state, groupID, verdict)
        }
    }

    /// An event between the stored answer and this one.
    package struct ExplainedEvent: Sendable {
        /// The subscription or purchase.
        package let id: OriginalTransactionID
        package let event: Event
    }

    /// Something that the earlier answer stated and this one takes back. It stands until a second answer does so, too.
    package struct HeldStatement: Sendable {
        /// The subscription or purchase.
        package let id: OriginalTransactionID
        package let transactionID: TransactionID
        package let what: Retraction.What
        /// The instant of this answer.
        package let since: Instant
    }

    /// What the answer proves.
    package let finding: Finding
    private let response: VerifyReceiptResponse?
    /// Apple's status code; nil where the answer has none.
    package var status: Int? { response?.status }
    /// The environment that the answer names.
    package var environment: StoreEnvironment? { response?.environment }
    /// The app that the answer names.
    package var bundleID: BundleID? { response?.bundleID }
    /// The instant that the explanation is for.
    package let at: Instant
    package let subscriptions: [ExplainedSubscription]
    package let purchases: [PurchaseState]
    /// Paths of rows that were skipped because they cannot be read.
    var unreadableRows: [String] { response?.unreadableRows ?? [] }
    /// Nil when there was no earlier answer to compare with.
    package let events: [ExplainedEvent]?
    /// What this answer takes back of the earlier one; nil likewise.
    package let held: [HeldStatement]?

    /// Explains a response body; unreadable data is explained as indeterminate.
    ///
    /// - Parameters:
    ///   - bundleID: The app asked about; nil accepts every app.
    ///   - at: The instant to explain for; the answer's `request_date_ms` where nil, else `now`.
    ///   - previous: An earlier answer to treat as the stored one.
    package init(body: [UInt8], bundleID: BundleID?, at: Instant?, previous: [UInt8]?, now: Instant) {
        let answer = AppStoreAnswer(body: body, from: .production)
        let clock = at ?? now
        finding = Finding(in: answer, for: bundleID, clock: clock)
        response = answer.response
        let earlier = previous.map {
            Finding(in: AppStoreAnswer(body: $0, from: .production), for: bundleID, clock: clock)
        }
        guard case .verified(let evidence) = finding else {
            self.at = at ?? answer.response?.requestedAt ?? now
            (subscriptions, purchases) = ([], [])
            (events, held) = previous == nil ? (nil, nil) : ([], [])
            return
        }
        let instant = at ?? evidence.asOf
        self.at = instant
        let policy = Policy.standard(for: evidence.environment).with(leeway: .zero)
        let folded = Self.fold(evidence, after: earlier?.evidence, policy: policy)
        subscriptions = folded.map { result in
            ExplainedSubscription(
                state: result.state, groupID: result.state.facts.groupID,
                verdict: verdict(of: result.state.facts, at: instant, policy: policy))
        }
        let bought = Self.purchases(evidence, after: earlier?.evidence)
        purchases = bought.map(\.state).sorted { $0.transactionID < $1.transactionID }
        guard previous != nil else {
            (events, held) = (nil, nil)
            return
        }
        events =
            folded.flatMap { result in
                result.events.map { ExplainedEvent(id: result.state.facts.originalTransactionID, event: $0) }
            }
            + bought.flatMap { result in
                result.events.map { ExplainedEvent(id: result.state.facts.key.originalTransactionID, event: $0) }
            }
        held = folded.flatMap { HeldStatement.all(in: $0.state) } + bought.compactMap { HeldStatement(in: $0.state) }
    }

    /// Folds both answers as a settlement does; returns what the last one changed of its subscriptions.
    private static func fold(_ evidence: Evidence, after earlier: Evidence?, policy: Policy) -> [Reconciled] {
        var states: [OriginalTransactionID: SubscriptionState] = [:]
        var folded: [OriginalTransactionID: Reconciled] = [:]
        func learn(_ slice: SubscriptionEvidence, _ elsewhere: LineItemsElsewhere? = nil) {
            let id = slice.originalTransactionID
            var result = reconcile(states[id], with: slice, elsewhere: elsewhere, policy: policy)
            states[id] = result.state
            result.events = (folded[id]?.events ?? []) + result.events
            folded[id] = result
        }
        for answer in [earlier, evidence].compactMap(\.self) {
            folded = [:]
            answer.forEachStep(known: { states.sorted { $0.key < $1.key }.map(\.value) }) { step in
                switch step {
                case .part(let slice, let elsewhere): learn(slice, elsewhere)
                case .move(let move): learn(move.evidence())
                case .shown(let slice): learn(slice)
                }
            }
        }
        return folded.sorted { $0.key < $1.key }.map(\.value)
    }

    private static func purchases(_ evidence: Evidence, after earlier: Evidence?) -> [ReconciledPurchase] {
        evidence.purchases.compactMap { purchase in
            let stored = earlier?.purchases.first { $0.key == purchase.key }
                .flatMap { reconcilePurchase(nil, with: $0)?.state }
            return reconcilePurchase(stored, with: purchase)
        }
    }
}

extension AnswerExplanation.HeldStatement {
    fileprivate static func all(in state: SubscriptionState) -> [AnswerExplanation.HeldStatement] {
        state.retractions.map {
            AnswerExplanation.HeldStatement(
                id: state.facts.originalTransactionID, transactionID: $0.transactionID, what: $0.what, since: $0.since)
        }
    }

    fileprivate init?(in state: PurchaseState) {
        guard let since = state.refundRetractedAt else { return nil }
        self.init(
            id: state.facts.key.originalTransactionID, transactionID: state.transactionID, what: .revocation,
            since: since)
    }

    fileprivate var shown: String {
        switch what {
        case .end: "transaction \(transactionID) ends earlier here"
        case .revocation: "the refund of transaction \(transactionID) is missing here"
        case .upgrade: "the replacement of transaction \(transactionID) is missing here"
        case .seats: "a refund of seats of transaction \(transactionID) is missing here"
        }
    }
}

extension KeptAnswer {
    /// The evidence in the stored answer by the present rules; nil when it does not count as verified by these rules.
    package var evidence: Evidence? {
        if let contents = ServerContents(reading: body) {
            let instant = observation.firstAsOf
            return Evidence(in: contents, bundleID: bundleID, asOf: instant, claimedAt: instant)
        }
        let answer = AppStoreAnswer(body: body, from: environment)
        let settled = observation.firstAsOf
        return Finding(in: answer, for: bundleID, clock: settled, limit: .settled(settled)).evidence
    }
}

extension AppStoreAnswer {
    /// Creates an answer from storage instead of the network.
    init(body: [UInt8], from environment: StoreEnvironment) {
        self.init(
            environment: environment, httpStatus: nil, body: body, failure: nil, calls: 0, usedPreviousSecret: false,
            elapsedMilliseconds: 0)
    }
}

extension AnswerExplanation {
    /// The most unreadable rows that are named.
    private static let unreadableShownMax = 10

    /// The explanation in lines, for a human reader.
    package var text: String {
        var lines = ["\(finding.outcomeWord)\(finding.reasonSentence.map { ": \($0)" } ?? "")"]
        if finding.evidence == nil {
            lines.append(finding.isRetryable ? "Asking again can help." : "Asking again cannot help.")
        } else {
            let (app, store) = (bundleID?.text ?? "no bundle id", environment?.rawValue ?? "no environment named")
            lines.append("\(app), \(store), at \(at.iso8601)")
            lines += subscriptions.flatMap(\.lines)
            lines += purchases.map(line(of:))
            let isEmpty = subscriptions.isEmpty && purchases.isEmpty && unreadableRows.isEmpty
            if isEmpty { lines.append("The receipt holds no purchases.") }
            lines += unreadableRows.prefix(Self.unreadableShownMax).map { "left out, because it cannot be read: \($0)" }
        }
        if let events {
            lines.append(events.isEmpty ? "nothing changed" : "changed:")
            lines += events.map(line(of:))
        }
        lines += (held ?? []).map { held in
            "\(held.shown): what was stated stands until a second answer says so, too, ten minutes after the newest statement "
                + "of it at the earliest"
        }
        return lines.map(\.visible).joined(separator: "\n")
    }

    private func line(of purchase: PurchaseState) -> String {
        let refund = purchase.revokedAt.map { ", refunded \($0.iso8601)" } ?? ""
        let product = purchase.facts.key.productID
        return "purchase \(purchase.transactionID): \(product), bought \(purchase.purchasedAt.iso8601)\(refund)"
    }

    private func line(of explained: ExplainedEvent) -> String {
        let event = explained.event
        return "  \(event.occurredAt.iso8601) \(event.kind.rawValue) \(event.productID) (\(explained.id))"
    }
}

extension AnswerExplanation.ExplainedSubscription {
    fileprivate var lines: [String] {
        let reason = verdict.reason.map { " (\($0.rawValue))" } ?? ""
        let end = verdict.entitledUntil?.iso8601 ?? "further notice"
        let access = verdict.entitled ? "has access until \(end)" : "has no access"
        let renewal =
            switch state.willRenew {
            case true?: "renews to \(state.renewsToProductID?.text ?? "an unnamed product")"
            case false?: "will not renew"
            case nil: "renewal unknown"
            }
        let sale = state.sale.words.map { ["  \($0)"] } ?? []
        let flags = verdict.flags.isEmpty ? "" : ", " + verdict.flags.map(\.rawValue).joined(separator: ", ")
        return [
            "subscription \(state.facts.originalTransactionID): \(verdict.productID)",
            "  \(verdict.state.rawValue)\(reason): \(access)",
            "  expires \(verdict.expiresAt.iso8601), \(renewal)\(flags)",
            "  \(state.periods.of("period", "periods")) since \(state.startedAt.iso8601)",
        ] + sale + verdict.because.map { "  because \($0.rule): \($0.path) = \($0.value)" }
    }
}

extension SaleStanding {
    /// The payment of a term and the seats of a group in words; nil without either.
    package var words: String? {
        var words: [String] = []
        if let paymentNumber, let payments {
            let end = termEndsAt.map { " of a term until \($0.iso8601)" } ?? ""
            words.append("payment \(paymentNumber) of \(payments)\(end)")
        }
        if let seats { words.append(seats.of("seat", "seats")) }
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }
}

extension Finding {
    package var outcomeWord: String { outcome.rawValue }

    /// The reason why it proves nothing; nil when it is verified.
    package var reasonSentence: String? { evidence == nil ? reason : nil }

    /// Whether asking again can help.
    package var isRetryable: Bool {
        switch self {
        case .verified: false
        case .rejected(let refusal): refusal.retryable
        case .indeterminate(let failure): failure.retryable
        }
    }

    /// What Apple vouched for; nil unless it is verified.
    var evidence: Evidence? {
        switch self {
        case .verified(let evidence): evidence
        case .rejected, .indeterminate: nil
        }
    }
}

/// What a signed text says, whether Apple signed it, and by which chain: no database, no network.
package struct SignedExplanation: Sendable {
    /// How deep signed texts are looked for in signed texts: a notification holds a transaction.
    private static let depthMax = 2

    /// The place of the text within the outer one; empty for the outer one.
    package let path: String
    /// The verified text, or why it does not count as signed by Apple.
    package let outcome: Result<SignedText, SignedTextRefusal>
    /// The values of the payload that are no signed texts.
    package let claims: [SignedClaim]
    /// The claims that this version knows and cannot read.
    package let unreadable: [String]
    /// Whether it is a transaction whose row is ignored because of them.
    package let isIgnored: Bool
    package let inner: [SignedExplanation]

    /// Explains the signed text in `body`: a text in compact form, or the body of a notification.
    package init(body: [UInt8], by verifier: SignedTextVerifier) async {
        await self.init(text: SignedText.inBody(body), at: "", depth: 0, by: verifier)
    }

    private init(text: [UInt8], at path: String, depth: Int, by verifier: SignedTextVerifier) async {
        self.path = path
        do {
            let signed = try await verifier.verify(text)
            outcome = .success(signed)
            let all = signed.claims
            claims = all.filter { !$0.isSigned }
            let kind = UnreadClaim.Kind(of: signed.payload)
            unreadable = (kind.map { UnreadClaim.all(in: $0, payload: signed.payload) } ?? []).filter(\.isUnreadable)
                .map(\.name)
            isIgnored = kind == .transaction && SignedTransaction(signed) == nil
            var inner: [SignedExplanation] = []
            for claim in all where claim.isSigned && depth < Self.depthMax {
                let place = path.isEmpty ? claim.path : "\(path).\(claim.path)"
                inner.append(
                    await SignedExplanation(
                        text: Array(claim.value.utf8), at: place, depth: depth + 1, by: verifier))
            }
            self.inner = inner
        } catch {
            outcome = .failure(error)
            (claims, unreadable, isIgnored, inner) = ([], [], false, [])
        }
    }

    package var text: String { lines.map(\.visible).joined(separator: "\n") }

    private var lines: [String] {
        let name = path.isEmpty ? "" : "\(path): "
        switch outcome {
        case .failure(let refusal): return ["\(name)refused: \(refusal.sentence)"]
        case .success(let signed):
            let (from, until) = (signed.chain.validity.lowerBound, signed.chain.validity.upperBound)
            let chain = signed.chain.subjects.enumerated().map { "  \($0 == 0 ? "signed by" : "issued by") \($1)" }
            return ["\(name)verified, signed \(Instant(milliseconds: signed.signedAt).iso8601)"] + chain
                + ["  valid \(Instant(milliseconds: from).iso8601) to \(Instant(milliseconds: until).iso8601)"]
                + claims.map { "  \($0.path) = \($0.value)" } + unreadable.map { "  cannot be read: \($0)" }
                + (isIgnored ? ["  left out, because it cannot be read"] : []) + inner.flatMap(\.lines)
        }
    }
}

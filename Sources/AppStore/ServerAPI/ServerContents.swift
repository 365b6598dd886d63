import JSON
package import Subscriptions

/// What answers of the Server API hold: the statuses of subscriptions and the transactions of a history. It is read
/// from one JSON text, which the observation keeps: `{"asked", "environment", "from", "statuses": Apple's
/// answer, "history": [Apple's pages], "transaction": what names the asked transaction where these lack its id}`. In a
/// stored text the headers of signed texts are short (``ShortText``).
package struct ServerContents: Sendable, Hashable {
    /// A signed text with its place in the JSON text.
    package struct Text: Sendable, Hashable {
        /// Its place, such as `history[0].signedTransactions[3]`.
        package let path: String
        /// The text in compact form, whole or short.
        package let compact: [UInt8]

        /// The payload; nil for a text that is none.
        package var payload: [UInt8]? { ShortText.payload(of: compact) }

        /// The signed transaction that it is; nil where its row is ignored.
        package var transaction: SignedTransaction? {
            payload.flatMap { SignedTransaction(payload: $0, path: path) }
        }

        /// The signed renewal information that it is; nil where it cannot be read as such.
        fileprivate var signedRenewal: SignedRenewal? { payload.flatMap { SignedRenewal(payload: $0, path: path) } }
    }

    /// What Apple states about one subscription.
    package struct Status: Sendable, Hashable {
        /// `status`, 1 to 5 so far.
        package let status: Int?
        package let transaction: Text?
        package let renewal: Text?
    }

    /// The transaction id that was asked about.
    package let asked: String
    /// A signed text of that transaction, where the statuses and the history list its purchase under another id: what the
    /// device sent, or Apple's answer to Get Transaction Info.
    package let named: Text?
    /// The environment that answered.
    package let environment: StoreEnvironment
    /// The statuses; nil where Apple knows no subscription of the customer.
    package let statuses: [Status]?
    /// The transactions of the pages; nil in an answer of a time when statuses alone were read.
    package let transactions: [Text]?
    /// Where the history was read from; nil: from its start.
    package let from: String?
    /// Where the next read of the history begins; nil without a history.
    package let revision: String?
    /// Whether the history goes on after what was read.
    package let goesOn: Bool
    /// The envelopes of Apple's answers: app, environment and number of the app that each names.
    let subjects: [Subject]

    struct Subject: Sendable, Hashable {
        let bundleID: String?
        let environment: String?
        let appleAppID: Int64?

        fileprivate init(_ answer: JSONObject) {
            bundleID = answer.text("bundleId")
            environment = answer.text("environment")
            appleAppID = answer.digits("appAppleId")
        }
    }

    /// Whether a history was read on from a revision to its end: what it lacks is as it was.
    package var readsOn: Bool { transactions != nil && from != nil && !goesOn }

    package var texts: [Text] { answeredTexts + [named].compactMap(\.self) }

    /// The signed texts of the statuses and the history.
    var answeredTexts: [Text] {
        (statuses ?? []).flatMap { [$0.transaction, $0.renewal].compactMap(\.self) } + (transactions ?? [])
    }

    /// The places of texts that cannot be read: what they state is ignored.
    package var unreadableTexts: [String] {
        let transactions = (statuses ?? []).map(\.transaction) + (self.transactions ?? []) + [named]
        return transactions.compactMap { $0?.transaction == nil ? $0?.path : nil }
            + (statuses ?? []).compactMap { $0.renewal?.signedRenewal == nil ? $0.renewal?.path : nil }
    }

    /// Reads the JSON text; nil for another text.
    package init?(reading json: [UInt8]) {
        guard let all = JSONObject(json), let asked = all.text("asked"),
            let environment = all.text("environment").flatMap(StoreEnvironment.init(rawValue:))
        else { return nil }
        self.asked = asked
        self.environment = environment
        named = all.object("transaction")?.text("signedTransactionInfo").map {
            Text(path: "transaction.signedTransactionInfo", compact: Array($0.utf8))
        }
        from = all.text("from")
        let pages = all.states("history") ? all.objects("history") : nil
        let stated = all.object("statuses")
        subjects = ([stated].compactMap(\.self) + (pages ?? [])).map(Subject.init)
        statuses = stated.map(Self.statuses)
        transactions = pages?.enumerated().flatMap { place, page in
            page.texts("signedTransactions").enumerated().map { number, text in
                Text(path: "history[\(place)].signedTransactions[\(number)]", compact: Array(text.utf8))
            }
        }
        revision = pages?.last?.text("revision")
        goesOn = pages?.last?.text("hasMore") == "true"
    }

    private static func statuses(_ answer: JSONObject) -> [Status] {
        answer.objects("data").enumerated().flatMap { group, entry in
            entry.objects("lastTransactions").enumerated().map { row, members in
                let path = "statuses.data[\(group)].lastTransactions[\(row)]"
                func signed(_ name: String) -> Text? {
                    members.text(name).map { Text(path: "\(path).\(name)", compact: Array($0.utf8)) }
                }
                return Status(
                    status: members.digits("status").flatMap { Int(exactly: $0) },
                    transaction: signed("signedTransactionInfo"), renewal: signed("signedRenewalInfo"))
            }
        }
    }
}

extension Evidence {
    /// Reads the evidence in verified answers of the Server API; nil where none of their texts can be read.
    ///
    /// Statuses and history are one answer: what both lack is as it was, unless a text of them cannot be read. It is as old
    /// as the oldest text of the statuses, because the history was read later. Each transaction keeps the instant at which
    /// it was signed; renewals speak for the answer, as those of verifyReceipt do, so that an equal answer renews them.
    ///
    /// `instant` is when the answer was given, nil where its texts tell it, and `claimedAt` when it was asked for.
    package init?(in contents: ServerContents, bundleID: BundleID, asOf instant: Instant? = nil, claimedAt: Instant) {
        var transactions = (contents.transactions ?? []).compactMap { $0.transaction?.row }
        var renewals: [RenewalRow] = []
        var (said, unsigned): ([TransactionRow], [RenewalRow]) = ([], [])
        for status in contents.statuses ?? [] {
            let word = status.status.flatMap(AppleStatus.init(rawValue:))
            let transaction = status.transaction?.transaction
            if let transaction { said.append(transaction.row) }
            if let renewal = status.renewal?.signedRenewal {
                renewals.append(renewal.row(status: word, beside: transaction))
            } else if status.renewal == nil, let word, let transaction, let row = RenewalRow(word, of: transaction) {
                unsigned.append(row)
            }
        }
        for index in said.indices { said[index].source = .statuses }
        let oldest = (said.map(\.asOf) + renewals.map(\.asOf)).min()
        let asOf = instant ?? oldest ?? claimedAt
        let named = contents.named?.transaction?.row
        let read = transactions.count + said.count + renewals.count
        // What a device sent is no part of what Apple answered.
        let isComplete = read == contents.answeredTexts.count
        renewals += unsigned
        for index in renewals.indices { renewals[index].asOf = asOf }
        guard read > 0 || named != nil || contents.texts.isEmpty else { return nil }
        transactions += said
        // The asked id is one more id of what the answer lists. All else is as the answer's own row states.
        if let named, var row = transactions.first(where: { $0.isAbout(named) }) {
            row.transactionID = TransactionID(contents.asked.storable)
            row.asOf = row.asOf - Delay(milliseconds: 1)
            transactions.append(row)
        }
        self.init(
            environment: contents.environment, bundleID: bundleID,
            asOf: asOf, transactions: transactions, renewals: renewals,
            isComplete: isComplete, confirmsOtherPurchases: contents.readsOn && isComplete)
    }
}

extension RenewalRow {
    /// Creates the row that a status without renewal information means; nil if it says nothing of a failed payment.
    fileprivate init?(_ status: AppleStatus, of transaction: SignedTransaction) {
        let (isRetrying, isInGrace): (Bool, Bool)
        switch status {
        case .gracePeriod: (isRetrying, isInGrace) = (true, transaction.row.sale?.isMonthly != true)
        case .billingRetry: (isRetrying, isInGrace) = (true, false)
        case .expired: (isRetrying, isInGrace) = (false, false)
        case .active, .revoked: return nil
        }
        let (row, place) = (transaction.row, transaction.row.path.split(separator: ".").dropLast())
        var renewal = Renewal(productID: row.productID)
        (renewal.inBillingRetry, renewal.isInGraceByStatus) = (isRetrying, isInGrace)
        self.init(
            path: (place + ["status"]).joined(separator: "."), asOf: row.asOf,
            originalTransactionID: row.originalTransactionID, renewal: renewal)
    }
}

extension TransactionRow {
    /// Returns whether both are about one period or one-time purchase.
    fileprivate func isAbout(_ other: TransactionRow) -> Bool {
        if let item = webOrderLineItemID, let otherItem = other.webOrderLineItemID { return item == otherItem }
        // Transactions of one period can begin together.
        if self.sale?.isOneOfSeveral ?? other.sale?.isOneOfSeveral ?? false {
            return transactionID == other.transactionID
        }
        guard originalTransactionID == other.originalTransactionID, productID == other.productID else { return false }
        return expiresAt == nil || purchasedAt == other.purchasedAt
    }
}

/// Apple's answers as they are gathered, to become one JSON text.
struct GatheredAnswers: Sendable {
    let transactionID: String
    let environment: StoreEnvironment
    var from: String?
    var statuses: [UInt8]?
    var pages: [[UInt8]]?
    /// What names the asked transaction, in the form of Get Transaction Info.
    var named: [UInt8]?

    var json: [UInt8] {
        JSONText {
            $0.member("asked", transactionID)
            $0.member("environment", environment.rawValue)
            if let from { $0.member("from", from) }
            if let statuses { $0.member("statuses", json: statuses) }
            if let pages { $0.member("history", each: pages) { $0.write(json: $1[...]) } }
            if let named { $0.member("transaction", json: named) }
        }.bytes
    }
}

extension ServerContents {
    /// Verifies every text, and that all are about the app and environment that were asked; returns what is wrong.
    func fault(of request: ServerRequest, by verifier: SignedTextVerifier) async -> ServerVerdict? {
        let asked = subject(asked: request)
        for subject in subjects {
            if let sentence = asked.difference(subject.bundleID, subject.environment, subject.appleAppID) {
                return .otherSubject(sentence)
            }
        }
        for text in texts {
            if let fault = await fault(in: text, of: asked, by: verifier) { return fault }
        }
        return nil
    }

    /// Verifies the text that names the asked transaction, and that it is about the same app and environment.
    func faultInName(of request: ServerRequest, by verifier: SignedTextVerifier) async -> ServerVerdict? {
        guard let named else { return .unreadable }
        return await fault(in: named, of: subject(asked: request), by: verifier)
    }

    private func subject(asked request: ServerRequest) -> AskedSubject {
        AskedSubject(bundleID: request.key.bundleID, environment: environment, appleAppID: request.appleAppID)
    }

    private func fault(
        in text: Text, of asked: AskedSubject, by verifier: SignedTextVerifier
    ) async -> ServerVerdict? {
        do throws(SignedTextRefusal) {
            let claims = JSONObject(try await verifier.verify(text.compact).payload)
            return asked.difference(claims?.text("bundleId"), claims?.text("environment")).map { .otherSubject($0) }
        } catch {
            return .unverified("A text in Apple's answer cannot be verified (\(text.path)). \(error.sentence)")
        }
    }

    /// Whether the statuses or the history list the asked transaction under its own id.
    var listsAsked: Bool {
        answeredClaims.contains { claims in
            ["transactionId", "originalTransactionId", "appTransactionId"].contains { claims.text($0) == asked }
        }
    }

    /// Whether they list its purchase under another id: one of equal original id or line item.
    var listsNamed: Bool {
        guard let named = named?.payload.flatMap({ JSONObject($0) }) else { return false }
        return answeredClaims.contains { claims in
            ["originalTransactionId", "webOrderLineItemId"].contains { claim in
                claims.text(claim).map { $0 == named.text(claim) } ?? false
            }
        }
    }

    private var answeredClaims: some Sequence<JSONObject> {
        answeredTexts.lazy.compactMap { $0.payload.flatMap { JSONObject($0) } }
    }
}

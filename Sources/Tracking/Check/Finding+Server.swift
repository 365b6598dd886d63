import AppStore
import Ledger
import Subscriptions

extension Evidence {
    /// Reads the evidence in verified answers of the Server API; nil where none of their texts can be read.
    ///
    /// Statuses and history are one answer: what both lack is as it was. It is as old as the oldest text of the statuses,
    /// because the history was read later. Each row keeps the instant at which it was signed.
    ///
    /// - Parameters:
    ///   - instant: When the answer was given; nil where its texts tell it.
    ///   - claimedAt: When it was asked for, for an answer without statuses.
    init?(in contents: ServerContents, bundleID: BundleID, asOf instant: Instant? = nil, claimedAt: Instant) {
        var transactions = (contents.transactions ?? []).compactMap(\.row)
        var renewals: [RenewalRow] = []
        var said: [TransactionRow] = []
        for status in contents.statuses ?? [] {
            let word = status.status.flatMap(AppleStatus.init(rawValue:))
            let signed = status.transaction.flatMap(\.signed)
            said += [status.transaction.flatMap(\.row)].compactMap(\.self)
            renewals += [status.renewal.flatMap { $0.renewalRow(status: word, beside: signed) }].compactMap(\.self)
        }
        for index in said.indices { said[index].source = .statuses }
        let oldest = (said.map(\.asOf) + renewals.map(\.asOf)).min()
        let named = contents.named.flatMap(\.row)
        let read = transactions.count + said.count + renewals.count + (named == nil ? 0 : 1)
        guard read > 0 || contents.texts.isEmpty else { return nil }
        transactions += said
        // The asked id is one more id of what the answer lists. All else is as the answer's own row states.
        if let named, var row = transactions.first(where: { $0.isAbout(named) }) {
            row.transactionID = TransactionID(contents.asked.storable)
            row.asOf = row.asOf - Delay(milliseconds: 1)
            transactions.append(row)
        }
        self.init(
            environment: StoreEnvironment(contents.environment), bundleID: bundleID,
            asOf: instant ?? oldest ?? claimedAt, transactions: transactions, renewals: renewals,
            isComplete: read == contents.texts.count, confirmsOtherPurchases: contents.readsOn)
    }
}

extension TransactionRow {
    /// Returns whether both are about one period or one-time purchase.
    fileprivate func isAbout(_ other: TransactionRow) -> Bool {
        if let item = webOrderLineItemID, let otherItem = other.webOrderLineItemID { return item == otherItem }
        guard originalTransactionID == other.originalTransactionID, productID == other.productID else { return false }
        return expiresAt == nil || purchasedAt == other.purchasedAt
    }
}

extension ServerContents.Text {
    /// The row of a signed transaction; nil where it cannot be read.
    fileprivate var row: TransactionRow? { signed.map { TransactionRow($0, path: path) } }

    /// The signed transaction; nil where it cannot be read.
    fileprivate var signed: SignedTransaction? { payload.flatMap { SignedTransaction(payload: $0) } }

    /// Returns the row of signed renewal information; nil where it cannot be read.
    fileprivate func renewalRow(status: AppleStatus?, beside transaction: SignedTransaction?) -> RenewalRow? {
        payload.flatMap { SignedRenewal(payload: $0) }.map {
            RenewalRow($0, path: path, status: status, beside: transaction)
        }
    }
}

extension Finding {
    /// Determines the outcome of what the Server API said.
    ///
    /// - Parameters:
    ///   - verdict: What it said.
    ///   - evidence: What its verified texts state; nil where there are none.
    init(_ verdict: ServerVerdict, evidence: Evidence?) {
        let reason = verdict.sentence ?? "Apple's answer holds nothing about the transaction."
        func failure(retryable: Bool = true, _ kind: CheckFailure.Kind = .noUsableAnswer) -> Finding {
            .indeterminate(CheckFailure(reason: reason, status: verdict.code, retryable: retryable, kind: kind))
        }
        func refusal(_ kind: Refusal.Kind, retryable: Bool) -> Finding {
            .rejected(Refusal(reason: reason, status: verdict.code, retryable: retryable, kind: kind))
        }
        switch verdict {
        case .answered: self = evidence.map(Finding.verified) ?? failure()
        case .unknownTransaction: self = refusal(.unknownTransaction, retryable: true)
        case .idRefused: self = refusal(.badRequest, retryable: false)
        case .otherSubject: self = refusal(.otherBundle, retryable: false)
        case .keyRefused, .appRefused: self = failure(.appRefused)
        case .unverified, .ourFault, .noAnswer: self = failure()
        }
    }
}

extension ServerRead {
    init(_ contents: ServerContents) {
        self.init(
            beginsAtStart: contents.transactions != nil && contents.from == nil, revision: contents.revision,
            goesOn: contents.goesOn)
    }
}

import Subscriptions

/// How far an answer of the Server API reads a customer's transactions.
package struct ServerRead: Sendable, Hashable {
    /// Whether a history was read from its start.
    package let beginsAtStart: Bool
    /// Where the next read of the history begins; nil: no history was read.
    package let revision: String?
    /// Whether the history goes on after what was read.
    package let goesOn: Bool

    /// Creates it from its parts.
    package init(beginsAtStart: Bool, revision: String?, goesOn: Bool) {
        (self.beginsAtStart, self.revision, self.goesOn) = (beginsAtStart, revision, goesOn)
    }

    /// An answer that holds no transactions.
    package static let nothing = ServerRead(beginsAtStart: false, revision: nil, goesOn: false)

    /// Whether it holds all transactions. Otherwise what it lacks is as it was.
    var isWhole: Bool { beginsAtStart && !goesOn }
}

/// Why the contents of an upload are believed to be its sender's.
package enum Vouching: String, Sendable, CaseIterable {
    /// verifyReceipt vouched for the receipt.
    case vouched
    /// Apple signed the transaction.
    case signed
    /// Nothing: the sender named a transaction, which needs only its id.
    case pointer

    /// Determines it for a stored upload.
    init(_ form: SubmittedForm, isVouched: Bool) {
        switch form {
        case .receipt: self = isVouched ? .vouched : .pointer
        case .signedTransaction: self = .signed
        case .transactionID: self = .pointer
        }
    }
}

extension Settlement {
    /// How long after an unfinished read of a history the next one begins.
    static let nextPageDelay = Delay.seconds(1)

    /// Why the contents are believed to be the uploader's.
    var vouching: Vouching {
        Vouching(claim.form, isVouched: claim.isVouched || (server == nil && evidence != nil))
    }

    /// Whether it names all subscriptions that Apple still lists. The statuses of the Server API always do.
    var listsSubscriptions: Bool { evidence != nil && server?.goesOn != true }

    /// Whether everything that the answer lacks does not exist.
    var speaksForAll: Bool { evidence != nil && server?.isWhole ?? true }

    /// Where the next read of the history begins; nil: as before.
    var newRevision: String? { evidence == nil ? nil : server?.revision }

    /// A transaction id by which the Server API can be asked; nil where one is stored, and without evidence.
    var newTransactionID: TransactionID? {
        guard claim.transactionID == nil, let evidence else { return nil }
        return evidence.transactions.max { ($0.purchasedAt, $0.path) < ($1.purchasedAt, $1.path) }
            .map { TransactionID($0.originalTransactionID.text) }
    }
}

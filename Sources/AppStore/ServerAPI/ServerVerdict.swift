/// What the Server API said about a transaction, as far as a check is concerned.
package enum ServerVerdict: Sendable, Hashable {
    /// Verified texts of the app and the environment that were asked about.
    case answered(ServerContents)
    /// Apple knows no such transaction, or not its customer any more. Code of the last answer.
    case unknownTransaction(code: Int)
    /// The id can never be asked about.
    case idRefused(code: Int)
    /// The answer is about another app or environment, or lacks the id; one sentence.
    case otherSubject(String)
    /// Apple does not accept the key, or has never released the app there.
    case keyRefused
    /// Apple does not know the app.
    case appRefused(code: Int)
    /// A text cannot be verified; one sentence.
    case unverified(String)
    /// Apple finds a fault in the request.
    case ourFault(code: Int)
    /// Apple has a temporary problem, or gave no answer; one sentence.
    case noAnswer(String, code: Int?)

    /// What the verified texts hold.
    package var contents: ServerContents? {
        switch self {
        case .answered(let contents): contents
        case .unknownTransaction, .idRefused, .otherSubject, .keyRefused, .appRefused, .unverified, .ourFault,
            .noAnswer:
            nil
        }
    }

    /// Whether nothing was learnt, and by no fault of the transaction or the app's key.
    package var isFailure: Bool {
        switch self {
        case .noAnswer, .unverified, .ourFault: true
        case .answered, .unknownTransaction, .idRefused, .otherSubject, .keyRefused, .appRefused: false
        }
    }

    /// What is wrong with the way Apple is asked, or with what it signs; an operator has to know. Nil for nothing.
    package var fault: String? {
        switch self {
        case .keyRefused, .appRefused, .unverified, .ourFault: sentence
        case .answered, .unknownTransaction, .idRefused, .otherSubject, .noAnswer: nil
        }
    }

    /// Apple's code, if it gave one.
    package var code: Int? {
        switch self {
        case .answered: 0
        case .unknownTransaction(let code), .idRefused(let code), .appRefused(let code), .ourFault(let code): code
        case .noAnswer(_, let code): code
        case .otherSubject, .keyRefused, .unverified: nil
        }
    }

    /// The verdict as one sentence; nil where Apple answered. Never contains a secret, an id or a host name.
    package var sentence: String? {
        switch self {
        case .answered: nil
        case .unknownTransaction(let code): "Apple knows no such transaction (\(code))."
        case .idRefused(let code): "Apple does not take the id of the transaction (\(code))."
        case .otherSubject(let sentence), .unverified(let sentence), .noAnswer(let sentence, _): sentence
        case .keyRefused:
            "Apple does not accept the app's server key (401); check key, issuer id and bundle id, and store the key "
                + "again with `perennial app server-key`."
        case .appRefused(let code): "Apple does not know the app (\(code)); check its bundle id and its server key."
        case .ourFault(let code): "Apple found a fault in the request (\(code)); please report this as a bug."
        }
    }
}

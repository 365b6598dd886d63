import AppStore
import Hummingbird
import Ledger
import Tracking

extension Problem {
    /// Creates the problem that a caller sees for an error. Details that the caller must not know stay in the log.
    init(telling error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as ReceiptDataError: self = Problem(.notAReceipt, error.description)
        case let refusal as UploadRefusal:
            self = Problem(
                .receiptRejected, refusal.sentence, members: UploadResult.refused(.vain, order: nil).members)
        case let failure as SupportFailure:
            self =
                failure.isRefusal
                ? Problem(.invalid, failure.sentence) : .unavailable(failure.sentence, retryAfterSeconds: 60)
        case let error as LedgerError: self = Problem(telling: error)
        case let error as DecodingError: self = Problem(telling: error)
        case let error as any HTTPResponseError: self = Problem(status: error.status)
        default: self = Problem(telling: error.storageFailure)
        }
    }

    private static let unexplained = Problem(
        .failed, "The request failed; the server's log has the reason under this request id.")

    private init(telling error: LedgerError) {
        switch error.kind {
        case .notFound: self = Problem(.notFound, error.message)
        case .exists: self = Problem(.conflict, error.message)
        case .invalid: self = Problem(.invalid, error.message)
        case .busy: self = .unavailable(error.message, retryAfterSeconds: 1)
        case .exhausted(let seconds):
            self = Problem(.tooMany, error.message, headers: [.retryAfter: String(seconds)])
        case .mismatch:
            self = .unavailable(
                "The server cannot use its database as it is set up; the server's log has the reason.",
                retryAfterSeconds: 30)
        }
    }

    private init(telling failure: StorageFailure?) {
        let seconds = failure?.retryAfterSeconds
        self =
            seconds.map { .unavailable("The database cannot answer at the moment.", retryAfterSeconds: $0) }
            ?? .unexplained
    }

    /// Names the field but never repeats a value of the body, because a value may be a receipt.
    private init(telling error: DecodingError) {
        let detail =
            switch error {
            case .keyNotFound(let key, let context): "The body's \(Self.place(context.codingPath + [key])) is missing."
            case .valueNotFound(_, let context): "The body's \(Self.place(context.codingPath)) must not be null."
            case .typeMismatch(_, let context): "The body's \(Self.place(context.codingPath)) has the wrong type."
            case .dataCorrupted(let context) where !context.codingPath.isEmpty:
                "The body's \(Self.place(context.codingPath)) "
                    + ((context.underlyingError as? LedgerError)?.message ?? "cannot be used.")
            case .dataCorrupted: "The body is not JSON."
            @unknown default: "The body cannot be used."
            }
        self = Problem(.invalid, detail)
    }

    /// The name of a field of the body.
    static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "outermost value" : path.map(\.stringValue).joined(separator: ".")
    }

    private init(status: HTTPResponse.Status) {
        switch status {
        case .notFound: self = Problem(.notFound, "Nothing answers at this path; GET /openapi.yaml lists what does.")
        case .contentTooLarge: self = Problem(.tooLarge, "The body is larger than this server reads.")
        case .badRequest: self = Problem(.invalid, "The request cannot be read.")
        default: self = .unexplained
        }
    }
}

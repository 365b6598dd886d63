import Hummingbird

extension Problem {
    /// The kinds of problem. The raw value ends the problem's `type`, which programs may compare.
    enum Kind: String, CaseIterable, Sendable {
        case invalid
        case unauthenticated
        case forbidden
        case notFound = "not-found"
        case unknownApp = "unknown-app"
        case methodNotAllowed = "method-not-allowed"
        case timedOut = "timed-out"
        case conflict
        case otherFeed = "other-feed"
        case tooLarge = "too-large"
        case notAReceipt = "not-a-receipt"
        case receiptRejected = "receipt-rejected"
        case unsupportedMedia = "unsupported-media"
        case tooMany = "too-many"
        case failed
        case unavailable

        /// The HTTP status.
        var status: HTTPResponse.Status {
            switch self {
            case .invalid: .badRequest
            case .unauthenticated: .unauthorized
            case .forbidden: .forbidden
            case .notFound, .unknownApp: .notFound
            case .methodNotAllowed: .methodNotAllowed
            case .timedOut: .requestTimeout
            case .conflict, .otherFeed: .conflict
            case .tooLarge: .contentTooLarge
            case .notAReceipt, .receiptRejected: .unprocessableContent
            case .unsupportedMedia: .unsupportedMediaType
            case .tooMany: .tooManyRequests
            case .failed: .internalServerError
            case .unavailable: .serviceUnavailable
            }
        }

        /// A short title that is the same for every occurrence.
        var title: String {
            switch self {
            case .invalid: "The request cannot be used"
            case .unauthenticated: "An API key is needed"
            case .forbidden: "The API key may not do this"
            case .notFound: "There is nothing here"
            case .unknownApp: "The app is not registered"
            case .methodNotAllowed: "The method is not answered here"
            case .timedOut: "The request took too long to arrive"
            case .conflict: "It exists already"
            case .otherFeed: "The cursor is of another feed"
            case .tooLarge: "The body is too large"
            case .notAReceipt: "This is not a receipt"
            case .receiptRejected: "Apple does not vouch for the receipt"
            case .unsupportedMedia: "The body is not JSON"
            case .tooMany: "Too many requests"
            case .failed: "Something went wrong here"
            case .unavailable: "Try again later"
            }
        }
    }
}

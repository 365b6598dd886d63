/// The result of asking Apple about one receipt. An outage is a result too: `response` is nil and `failure` says why.
package struct AppStoreAnswer: Sendable, Equatable {
    /// The endpoint that gave the final answer, or failed to.
    package let environment: Endpoint
    /// The HTTP status of the final call; nil when none arrived.
    package let httpStatus: Int?
    /// The final body as received, at most `AppStoreOptions.responseBytesMax`; empty if none arrived or it was too
    /// large. After a broken transfer, the part that arrived.
    package let body: [UInt8]
    /// What the bytes of the body show; nil if HTTP was not 200.
    package let outline: AnswerOutline?
    /// What the Server API said; nil for an answer of verifyReceipt.
    package let server: ServerVerdict?
    /// The endpoint of the Server API that was asked last; nil for an answer of verifyReceipt.
    package let lastEndpoint: ServerEndpoint?
    private let reading: Reading
    private let callFailure: String?
    /// The network's own description of the failure, if `failure` says less; for the log. Never contains a secret.
    package let failureDetail: String?
    /// The number of requests sent for this answer: of verifyReceipt 0 to 3.
    package let calls: Int
    /// Whether the final call used the previous secret. If so, and its status is not 21004 again, the current secret is
    /// wrong.
    package let usedPreviousSecret: Bool
    /// The duration of all calls together, in milliseconds.
    package let elapsedMilliseconds: Int
    /// Apple's id of the final call, to quote in a support case (`x-apple-jingle-correlation-key` or
    /// `x-apple-request-uuid`).
    package let correlationID: String?
    /// Whether Apple was not asked, because it refuses the app's shared secret.
    package var isHeldBack = false
    /// The wait that Apple asked for with HTTP other than 200, in seconds, of any length.
    package let retryAfterSeconds: Double?

    /// Creates an answer, for tests and other implementations of the client.
    package init(
        environment: Endpoint, httpStatus: Int?, body: [UInt8], response: VerifyReceiptResponse?,
        failure: String?, failureDetail: String? = nil, calls: Int, usedPreviousSecret: Bool, elapsedMilliseconds: Int,
        correlationID: String?,
        retryAfterSeconds: Double? = nil
    ) {
        self.environment = environment
        self.httpStatus = httpStatus
        self.body = body
        outline = httpStatus == 200 ? AnswerOutline(of: body) : nil
        (server, lastEndpoint) = (nil, nil)
        reading = .read(response)
        callFailure = failure
        self.failureDetail = failureDetail
        self.calls = calls
        self.usedPreviousSecret = usedPreviousSecret
        self.elapsedMilliseconds = elapsedMilliseconds
        self.correlationID = correlationID
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// Creates an answer of HTTP 200 whose body is decoded when it is asked for.
    init(
        environment: Endpoint, unread body: [UInt8], outline: AnswerOutline, calls: Int, usedPreviousSecret: Bool,
        elapsedMilliseconds: Int, correlationID: String?
    ) {
        self.environment = environment
        httpStatus = 200
        self.body = body
        self.outline = outline
        (server, lastEndpoint) = (nil, nil)
        reading = .unread(UnreadBody(body))
        (callFailure, failureDetail, retryAfterSeconds) = (nil, nil, nil)
        self.calls = calls
        self.usedPreviousSecret = usedPreviousSecret
        self.elapsedMilliseconds = elapsedMilliseconds
        self.correlationID = correlationID
    }

    /// Creates an answer of the Server API. Its body is the text that ``ServerContents`` reads; empty without one.
    package init(
        environment: Endpoint, server: ServerVerdict, httpStatus: Int?, body: [UInt8] = [],
        failureDetail: String? = nil, calls: Int, elapsedMilliseconds: Int = 0, correlationID: String? = nil,
        retryAfterSeconds: Double? = nil, lastEndpoint: ServerEndpoint = .statuses
    ) {
        self.environment = environment
        (self.server, self.lastEndpoint) = (server, lastEndpoint)
        self.httpStatus = httpStatus
        self.body = body
        outline = nil
        reading = .read(nil)
        callFailure = server.sentence
        self.failureDetail = failureDetail
        self.calls = calls
        usedPreviousSecret = false
        self.elapsedMilliseconds = elapsedMilliseconds
        self.correlationID = correlationID
        self.retryAfterSeconds = retryAfterSeconds
    }

    private enum Reading: Sendable {
        case read(VerifyReceiptResponse?)
        case unread(UnreadBody)
    }

    /// The decoded body; nil if HTTP was not 200 or the body is not a verifyReceipt answer. Its `status` may still be
    /// nil. The first call may decode the body.
    package var response: VerifyReceiptResponse? {
        switch reading {
        case .read(let response): response
        case .unread(let body): body.response
        }
    }

    /// The reason there is no usable response, in one sentence; nil if there is one. Never contains a secret, a receipt
    /// or a host name, so that it may be shown to any reader. The first call may decode the body.
    package var failure: String? {
        switch reading {
        case .read: callFailure
        case .unread(let body): body.failure
        }
    }

    /// Returns whether two answers are the same in everything that their callers see.
    package static func == (left: AppStoreAnswer, right: AppStoreAnswer) -> Bool {
        left.environment == right.environment && left.httpStatus == right.httpStatus && left.body == right.body
            && left.response == right.response && left.server == right.server && left.failure == right.failure
            && left.failureDetail == right.failureDetail && left.calls == right.calls
            && left.usedPreviousSecret == right.usedPreviousSecret
            && left.elapsedMilliseconds == right.elapsedMilliseconds && left.correlationID == right.correlationID
            && left.retryAfterSeconds == right.retryAfterSeconds
    }

    /// The failure with its detail, for the operator.
    package var failureInFull: String? {
        failure.map { sentence in failureDetail.map { "\(sentence) (\($0))" } ?? sentence }
    }
}

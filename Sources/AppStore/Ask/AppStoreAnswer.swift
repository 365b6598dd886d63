/// The result of asking Apple about one receipt. An outage is a result too: `response` is nil and `failure` says why.
package struct AppStoreAnswer: Sendable, Equatable {
    /// The endpoint that gave the final answer, or failed to.
    package let environment: Endpoint
    /// The HTTP status of the final call; nil when none arrived.
    package let httpStatus: Int?
    /// The final body as received, at most `AppStoreOptions.responseBytesMax`; empty if none arrived or it was too
    /// large. After a broken transfer, the part that arrived.
    package let body: [UInt8]
    /// The decoded body; nil if HTTP was not 200 or the body is not a verifyReceipt answer. Its `status` may still be
    /// nil.
    package let response: VerifyReceiptResponse?
    /// The reason there is no usable response, in one sentence; nil if there is one. Never contains a secret, a receipt
    /// or a host name, so that it may be shown to any reader.
    package let failure: String?
    /// The network's own description of the failure, if `failure` says less; for the log. Never contains a secret.
    package let failureDetail: String?
    /// The number of requests sent for this answer: 0 to 3.
    package let calls: Int
    /// Whether the final call used the previous secret. If so, and its status is not 21004 again, the current secret is
    /// wrong.
    package let usedPreviousSecret: Bool
    /// The duration of all calls together, in milliseconds.
    package let elapsedMilliseconds: Int
    /// Apple's id of the final call, to quote in a support case (`x-apple-jingle-correlation-key` or
    /// `x-apple-request-uuid`).
    package let correlationID: String?
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
        self.response = response
        self.failure = failure
        self.failureDetail = failureDetail
        self.calls = calls
        self.usedPreviousSecret = usedPreviousSecret
        self.elapsedMilliseconds = elapsedMilliseconds
        self.correlationID = correlationID
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// The failure with its detail, for the operator.
    package var failureInFull: String? {
        failure.map { sentence in failureDetail.map { "\(sentence) (\($0))" } ?? sentence }
    }
}

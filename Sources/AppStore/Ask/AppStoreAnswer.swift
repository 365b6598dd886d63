/// What came back from asking Apple about one receipt. An outage is an answer too: `response` is nil and `trouble` says why.
package struct AppStoreAnswer: Sendable, Equatable {
    /// The endpoint that gave the final answer, or failed to.
    package let environment: Endpoint
    /// The HTTP status of the final call; nil when none arrived.
    package let httpStatus: Int?
    /// The final body as it came, at most `AppStoreOptions.responseBytesMax`; empty when none arrived or it was too large.
    /// After a broken transfer, the part that arrived.
    package let body: [UInt8]
    /// The body decoded; nil when HTTP was not 200 or the body is not a verifyReceipt answer. Its `status` may still be nil.
    package let response: VerifyReceiptResponse?
    /// One sentence when there is no usable response; nil otherwise. Never holds a secret, a receipt or the name of a host, so
    /// that anybody may read it.
    package let trouble: String?
    /// What the network called the trouble, where `trouble` does not say as much; for the log. Never holds a secret.
    package let troubleDetail: String?
    /// How many requests were sent for this answer: 0 to 3.
    package let calls: Int
    /// Whether the final call used the previous secret. Unless its status is 21004 again, the current secret is wrong.
    package let usedPreviousSecret: Bool
    /// How long all calls took together, in milliseconds.
    package let elapsedMilliseconds: Int
    /// Apple's name for the final call, to quote in a support case (`x-apple-jingle-correlation-key` or `x-apple-request-uuid`).
    package let correlationID: String?
    /// How long Apple asked to be left alone with HTTP other than 200, in seconds; however long it said.
    package let retryAfterSeconds: Double?

    /// An answer, as a test or another implementation of the seam makes it.
    package init(
        environment: Endpoint, httpStatus: Int?, body: [UInt8], response: VerifyReceiptResponse?,
        trouble: String?, troubleDetail: String? = nil, calls: Int, usedPreviousSecret: Bool, elapsedMilliseconds: Int,
        correlationID: String?,
        retryAfterSeconds: Double? = nil
    ) {
        self.environment = environment
        self.httpStatus = httpStatus
        self.body = body
        self.response = response
        self.trouble = trouble
        self.troubleDetail = troubleDetail
        self.calls = calls
        self.usedPreviousSecret = usedPreviousSecret
        self.elapsedMilliseconds = elapsedMilliseconds
        self.correlationID = correlationID
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// The trouble with its detail, for whoever runs the program.
    package var troubleInFull: String? {
        trouble.map { sentence in troubleDetail.map { "\(sentence) (\($0))" } ?? sentence }
    }
}

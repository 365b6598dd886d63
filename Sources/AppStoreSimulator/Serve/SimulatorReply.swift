/// One HTTP request, with the parts the store uses.
package struct SimulatorRequest: Sendable {
    /// `GET`, `POST` and so on.
    package var method: String
    /// The path with its query.
    package var path: String
    /// The whole body.
    package var body: [UInt8]
    /// The value of the header `Authorization`.
    package var authorization: String?

    /// Creates a request.
    package init(method: String, path: String, body: [UInt8] = [], authorization: String? = nil) {
        self.method = method
        self.path = path
        self.body = body
        self.authorization = authorization
    }
}

/// One HTTP response, and the fault in its delivery.
package struct SimulatorReply: Sendable {
    /// The part of the body that is sent.
    package enum Delivery: Sendable, Equatable {
        /// All of it.
        case whole
        /// The declared length is that of the whole body, but only this many bytes are sent; then the connection
        /// closes.
        case cut(bytes: Int)
        /// All of it, in small pieces spread over this many seconds.
        case dripping(seconds: Double)
        /// Nothing; the connection closes after the delay.
        case never
    }

    /// The HTTP status.
    package var code: Int
    /// Names and values, without Content-Length.
    package var headers: [(name: String, value: String)]
    /// The whole body.
    package var body: [UInt8]
    /// Seconds to wait before the first byte is sent.
    package var delaySeconds = 0.0
    /// The part of the body that is sent.
    package var delivery = Delivery.whole

    init(code: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8]) {
        self.code = code
        self.headers = headers
        self.body = body
    }
}

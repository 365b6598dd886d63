/// One HTTP request, as far as the store looks at it.
package struct SimulatorRequest: Sendable {
    /// `GET`, `POST` and so on.
    package var method: String
    /// The path with its query.
    package var path: String
    /// The whole body.
    package var body: [UInt8]

    /// Makes a request.
    package init(method: String, path: String, body: [UInt8] = []) {
        self.method = method
        self.path = path
        self.body = body
    }
}

/// One HTTP answer, and how badly it is to be delivered.
package struct SimulatorReply: Sendable {
    /// What of the body goes out.
    package enum Delivery: Sendable, Equatable {
        /// All of it.
        case whole
        /// The length of all of it is promised, so many bytes are sent, then the connection closes.
        case cut(bytes: Int)
        /// All of it, in small pieces spread over so many seconds.
        case dripping(seconds: Double)
        /// Nothing is sent and the connection closes after the delay.
        case never
    }

    /// The HTTP status.
    package var code: Int
    /// Names and values, without Content-Length.
    package var headers: [(name: String, value: String)]
    /// The whole body.
    package var body: [UInt8]
    /// Seconds to wait before anything is sent.
    package var delaySeconds = 0.0
    /// What of the body goes out.
    package var delivery = Delivery.whole

    init(code: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8]) {
        self.code = code
        self.headers = headers
        self.body = body
    }
}

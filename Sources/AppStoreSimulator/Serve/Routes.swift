import Foundation

extension Simulator {
    /// Returns the store at a path, if there is one.
    static func store(at path: String) -> StoreEnvironment? {
        switch path {
        case "/verifyReceipt": .production
        case "/sandbox/verifyReceipt": .sandbox
        default: nil
        }
    }

    /// Answers one HTTP request, with its fault if it has one. Never throws: a failure is a response too.
    package func respond(to request: SimulatorRequest) -> SimulatorReply {
        let parts = request.path.split(separator: "?", maxSplits: 1)
        let path = parts.first.map { String($0) } ?? "/"
        if let environment = Self.store(at: path) { return verify(request, at: environment) }
        if let place = ServerCall.place(path) { return serve(request, at: place.environment, path: place.path) }
        guard path.hasPrefix("/simulator/") else { return SimulatorReply(code: 404, body: Array("Not Found".utf8)) }
        let query = URLComponents(string: request.path)?.queryItems ?? []
        return control(request, path: path.split(separator: "/").dropFirst().map { String($0) }, query: query)
    }

    /// Answers a verifyReceipt request. Apple answers 200 whatever the business outcome, and sends no Content-Type.
    private func verify(_ request: SimulatorRequest, at environment: StoreEnvironment) -> SimulatorReply {
        let body =
            request.method == "POST"
            ? answer(request.body, at: environment) : StatusCheck.unreadableRequest.errorBody(at: environment)
        let call = conditions.nextCall()
        let uuid = String(decoding: correlation(of: call), as: UTF8.self)
        var reply = SimulatorReply(
            headers: [("x-apple-jingle-correlation-key", uuid.uppercased()), ("x-apple-request-uuid", uuid)],
            body: body)
        reply.delaySeconds = Double(max(0, options.latencyMilliseconds)) / 1000
        return conditions.fault(ofCall: call, at: clock.now)?.applied(to: reply) ?? reply
    }

    /// Returns a UUID. Apple's support asks for these; here they distinguish calls.
    func correlation(of call: UInt64) -> [UInt8] {
        var numbers = SeededGenerator(seed: options.seed, stream: call)
        return HexDigits.uuid(numbers.next(), numbers.next())
    }
}

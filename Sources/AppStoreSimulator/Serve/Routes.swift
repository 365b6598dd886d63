import Foundation

extension Simulator {
    /// Answers one HTTP request, faults included. Never throws: an answer of trouble is an answer too.
    public func respond(to request: SimulatorRequest) -> SimulatorReply {
        let parts = request.path.split(separator: "?", maxSplits: 1)
        let path = parts.first.map { String($0) } ?? "/"
        switch path {
        case "/verifyReceipt": return verify(request, at: .production)
        case "/sandbox/verifyReceipt": return verify(request, at: .sandbox)
        default:
            guard path.hasPrefix("/simulator/") else {
                return SimulatorReply(code: 404, body: Array("Not Found".utf8))
            }
            let query = URLComponents(string: request.path)?.queryItems ?? []
            return control(request, path: path.split(separator: "/").dropFirst().map { String($0) }, query: query)
        }
    }

    /// Apple answers 200 whatever the business outcome, and sends no Content-Type.
    private func verify(_ request: SimulatorRequest, at environment: StoreEnvironment) -> SimulatorReply {
        let body =
            request.method == "POST"
            ? answer(request.body, at: environment) : StatusCheck.unreadableRequest.errorBody(at: environment)
        let now = clock.now
        let (fault, call) = world.withLock { world in
            (world.faultPlan.next(at: now), world.faultPlan.calls)
        }
        let reply = SimulatorReply(headers: correlation(of: call), body: body)
        return fault?.applied(to: reply) ?? reply
    }

    private func correlation(of call: UInt64) -> [(name: String, value: String)] {
        var numbers = SeededGenerator(seed: options.seed, stream: call)
        let (high, low) = (numbers.next(), numbers.next())
        let digits = [high, low].map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        let groups = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].map { start, end in
            String(digits.dropFirst(start).prefix(end - start))
        }
        return [
            ("x-apple-jingle-correlation-key", String(digits.uppercased().prefix(26))),
            ("x-apple-request-uuid", groups.joined(separator: "-")),
        ]
    }
}

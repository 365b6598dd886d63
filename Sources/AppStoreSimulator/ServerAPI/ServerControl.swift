import Foundation

/// The control calls about the App Store Server API.
extension Simulator {
    /// The most calls a second that a control call may allow.
    private static let perSecondMax = 1_000_000

    func setRate(_ body: [UInt8]) throws -> SimulatorReply {
        let wanted = try JSONDecoder().decode(RateRequest.self, from: Data(body))
        guard (0...Self.perSecondMax).contains(wanted.perSecond) else {
            return .refused(400, "per_second is 0 to \(Self.perSecondMax)")
        }
        let endpoints = wanted.endpoint.map { [$0] } ?? ServerEndpoint.allCases
        serverRates.set(wanted.perSecond, for: endpoints)
        return try .json(["endpoints": endpoints.map(\.rawValue)])
    }

    func clearRates() throws -> SimulatorReply {
        serverRates.clear()
        return try .json(["endpoints": [String]()])
    }

    /// The number of admitted calls of the Server API.
    package var serverCallCount: Int { serverConditions.calls }
}

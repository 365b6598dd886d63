/// One of Apple's two stores. Their ids are separate namespaces.
package enum Endpoint: String, Sendable, Hashable, CaseIterable, Codable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases: development builds, TestFlight and App Review.
    case sandbox = "Sandbox"

    /// The other store.
    package var other: Endpoint {
        switch self {
        case .production: .sandbox
        case .sandbox: .production
        }
    }
}

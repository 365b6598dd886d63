/// The two stores that Apple runs. Their ids and receipts never mix.
package enum StoreEnvironment: String, CaseIterable, Codable, Sendable {
    /// The real store.
    case production = "Production"
    /// The testers' store.
    case sandbox = "Sandbox"

    /// Accepts `Sandbox` and `sandbox`; returns nil for any unknown name.
    init?(named name: String) {
        guard let found = Self.allCases.first(where: { $0.rawValue.lowercased() == name.lowercased() }) else {
            return nil
        }
        self = found
    }
}

// Checks an entitlement of a customer: swiftc -parse-as-library docs/examples/entitled.swift, then ./entitled pro
// Needs PERENNIAL_URL, PERENNIAL_KEY (of scope read), APP and CUSTOMER. An error from the server does not mean "no".
import Foundation
#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Entitlements: Decodable {
    struct Entitlement: Decodable {
        let entitlement: String
        let granted: Bool
        let until: String?
    }

    let stale: Bool
    let entitlements: [Entitlement]
}

struct Unanswered: Error {
    let status: Int
}

func entitlements(of customer: String, app: String, url: String, key: String) async throws -> Entitlements {
    let id = customer.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? customer
    guard let address = URL(string: "\(url)/v1/apps/\(app)/customers/\(id)/entitlements") else { throw URLError(.badURL) }
    var request = URLRequest(url: address)
    request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization")
    let (body, response) = try await URLSession.shared.data(for: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard status == 200 else { throw Unanswered(status: status) }
    return try JSONDecoder().decode(Entitlements.self, from: body)
}

@main struct Entitled {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["PERENNIAL_URL"], let key = environment["PERENNIAL_KEY"],
            let app = environment["APP"], let customer = environment["CUSTOMER"]
        else { return print("Set PERENNIAL_URL, PERENNIAL_KEY, APP and CUSTOMER.") }
        let answer = try await entitlements(of: customer, app: app, url: url, key: key)
        let wanted = CommandLine.arguments.dropFirst().first ?? "pro"
        let right = answer.entitlements.first { $0.entitlement == wanted }
        print("\(customer) may \(right?.granted == true ? "" : "not ")use \(wanted) until \(right?.until ?? "further notice").")
    }
}

import Foundation
import HTTPTypes
import HummingbirdTesting
import NIOCore
import Testing

/// The members of a JSON answer, for tests to look at.
struct AnswerBody {
    private let members: [String: Any]

    init(_ response: TestResponse) throws {
        let json = try JSONSerialization.jsonObject(with: Data(String(buffer: response.body).utf8))
        members = try #require(json as? [String: Any])
    }

    var names: Set<String> { Set(members.keys) }
    func text(_ name: String) -> String? { members[name] as? String }
    func integer(_ name: String) -> Int? { members[name] as? Int }
    func flag(_ name: String) -> Bool? { members[name] as? Bool }
    func list(_ name: String) -> [[String: Any]]? { members[name] as? [[String: Any]] }
    func object(_ name: String) -> [String: Any]? { members[name] as? [String: Any] }
}

/// Expects a problem of RFC 9457 with the given kind, complete and with the status it names.
func expectProblem(
    _ response: TestResponse, _ kind: String, status: Int, _ location: SourceLocation = #_sourceLocation
) throws {
    #expect(response.status.code == status, sourceLocation: location)
    #expect(response.headers[.contentType] == "application/problem+json", sourceLocation: location)
    let body = try AnswerBody(response)
    #expect(body.text("type") == "urn:perennial:problem:\(kind)", sourceLocation: location)
    #expect(body.integer("status") == status, sourceLocation: location)
    #expect(body.text("title")?.isEmpty == false, sourceLocation: location)
    #expect(body.text("detail")?.hasSuffix(".") == true, sourceLocation: location)
    #expect(body.text("request_id")?.isEmpty == false, sourceLocation: location)
}

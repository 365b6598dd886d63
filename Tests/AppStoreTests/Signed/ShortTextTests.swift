import Testing

@testable import AppStore

@Suite("A stored text has the number of its header, and comes back byte for byte")
struct ShortTextTests {
    private let numbers: [String: Int32] = ["eyJh": 7, "eyJi": 12]
    private let headers: [Int32: String] = [7: "eyJh", 12: "eyJi"]

    @Test("An unknown number gives nothing back")
    func unknown() {
        #expect(ShortText.restoredStrings(of: Array(#"["~8.p.s"]"#.utf8), headers: headers) == nil)
    }

    @Test(
        "An answer",
        arguments: [
            (
                #"{"revision":"1.2","list":[ "eyJh.p.s","eyJi.p2.s2" ],"x\"eyJh.":"a\\"}"#,
                #"{"revision":"1.2","list":[ "~7.p.s","~12.p2.s2" ],"x\"eyJh.":"a\\"}"#
            ),
            (#"{"a":"~7.p.s","b":"eyJh.p.s"}"#, #"{"a":"~7.p.s","b":"eyJh.p.s"}"#), ("", ""),
            (#"{"cut":"eyJh.p"#, #"{"cut":"eyJh.p"#),
            (#"["eyJh"]"#, #"["eyJh"]"#), (#"["other.p.s"]"#, #"["other.p.s"]"#),
        ])
    func answer(_ whole: String, _ short: String) {
        let shortened = ShortText.shortenedStrings(of: Array(whole.utf8), numbers: numbers)
        #expect(String(decoding: shortened, as: UTF8.self) == short)
        if shortened != Array(whole.utf8) {
            #expect(ShortText.restoredStrings(of: shortened, headers: headers) == Array(whole.utf8))
        }
    }

    @Test("The payload of a text, whole or short")
    func payload() {
        #expect(ShortText.payload(of: Array("~7.e30.sig".utf8)) == Array("{}".utf8))
        #expect(ShortText.payload(of: Array("eyJh.e30.sig".utf8)) == Array("{}".utf8))
        #expect(ShortText.payload(of: Array("e30".utf8)) == nil)
    }
}

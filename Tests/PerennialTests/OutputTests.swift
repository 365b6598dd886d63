import Foundation
import JSON
import Logging
import Server
import Testing
import Tracking

@testable import perennial

@Suite("Output is aligned, quoted and harmless") struct OutputTests {
    static let listing = Listing(
        columns: ["name", "count", "ok"],
        rows: [["a,\"b\"", 7, true], [nil, 1_234, false], ["c", nil, nil]])

    @Test func `a table is aligned`() {
        #expect(
            Self.listing.table == """
                NAME   COUNT  OK
                a,"b"      7  yes
                -       1234  no
                c          -  -
                """)
    }

    @Test func `CSV quotes what needs it`() {
        #expect(Self.listing.csv == "name,count,ok\r\n\"a,\"\"b\"\"\",7,yes\r\n,1234,no\r\nc,,")
    }

    @Test func `what others sent moves no cursor and forges no line`() {
        let odd = Listing(columns: ["customer"], rows: [["a\u{1B}[2J\u{9B}1m\nb\u{202E}\u{2028}\u{7F}"], ["👩‍👩‍👧"]])
        #expect(
            odd.table == #"""
                CUSTOMER
                a\u{1b}[2J\u{9b}1m\u{a}b\u{202e}\u{2028}\u{7f}
                👩‍👩‍👧
                """#)
        #expect("one\ttwo\nthree\u{1B}[31m\r".visibleLines == "one\ttwo\nthree\\u{1b}[31m\\u{d}")
    }

    @Test func `a spreadsheet computes nothing of a CSV, and numbers stay numbers`() {
        let rows: [[JSONValue]] = [
            ["=1+1", "'=1+1"], ["+49 30", "'+49 30"], ["@sum", "'@sum"], ["-2+3", "'-2+3"], ["\t=1", "'\t=1"],
            ["\r=1", "\"'\r=1\""], ["=\"a\",b", "\"'=\"\"a\"\",b\""], ["-12.50", "-12.50"], [-7, "-7"], ["-", "'-"],
            ["a=1", "a=1"], [["=a", "b"], "'=a b"],
        ]
        for row in rows {
            guard case .string(let expected) = row[1] else { continue }
            #expect(Listing(columns: ["x"], rows: [[row[0]]]).csv == "x\r\n\(expected)")
        }
    }

    @Test func `JSON keeps every key`() {
        #expect(
            Self.listing.json.rendered()
                == #"[{"count":7,"name":"a,\"b\"","ok":true},{"count":1234,"name":null,"ok":false},{"count":null,"name":"c","ok":null}]"#
        )
    }

    @Test func `an error of Foundation becomes its reason`() {
        let missing = URL(filePath: "/nonexistent/x")
        let lost = #expect(throws: (any Error).self) { try Data().write(to: missing) }
        #expect(lost.map(ExitStatus.sentence) == "No such file or directory")
        let odd = ExitStatus.sentence(for: CocoaError(.fileReadInapplicableStringEncoding))
        #expect(!odd.isEmpty && !odd.contains("Domain") && !odd.hasSuffix("."), "\(odd)")
        #expect(ExitStatus.sentence(for: Failure("one\ntwo")) == "one two")
    }

    @Test func `a log line is one line, whatever the message holds`() {
        let metadata: Logger.Metadata = ["b": "x\ny", "a": ["k": "v"]]
        let text = LogFormat.text.line(
            time: "T", level: .info, label: "l", message: "one\ntwo\u{1B}[2J", metadata: metadata)
        #expect(text == #"T info l: one\u{a}two\u{1b}[2J a=["k": "v"] b=x\u{a}y"#)
        let json = LogFormat.json.line(time: "T", level: .error, label: "l", message: "a\nb", metadata: metadata)
        #expect(
            json == #"{"level":"error","logger":"l","message":"a\nb","metadata":{"a":{"k":"v"},"b":"x\ny"},"time":"T"}"#
        )
    }
}

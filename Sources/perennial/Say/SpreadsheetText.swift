extension String {
    /// The text as a spreadsheet shows it: what it would compute gets an apostrophe before it. A negative number is none.
    ///
    /// OWASP, "CSV Injection": a formula begins with one of these, or with a tab or a return before it.
    var spreadsheetText: String {
        guard let first = unicodeScalars.first, "=+-@\t\r\n＝＋－＠".unicodeScalars.contains(first),
            wholeMatch(of: /-[0-9]+(\.[0-9]+)?/) == nil
        else { return self }
        return "'" + self
    }
}

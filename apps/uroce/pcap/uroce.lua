-- SPDX-License-Identifier: BSD-3-Clause
-- Findings of `uroce pcap annotate` in Wireshark's packet list, tree, filters and expert information. They are comments of packets:
-- "SEVERITY RULE: SENTENCE". Comments that others wrote are left alone.
local uroce = Proto("uroce", "uroce finding")
local fields = {
	severity = ProtoField.string("uroce.severity", "Severity"),
	rule = ProtoField.string("uroce.rule", "Rule"),
	finding = ProtoField.string("uroce.finding", "Finding"),
}
local experts = {
	error = ProtoExpert.new("uroce.error", "uroce: a host broke a rule, or the packet is damaged", expert.group.PROTOCOL, expert.severity.ERROR),
	warning = ProtoExpert.new("uroce.warning", "uroce: this costs time or data", expert.group.SEQUENCE, expert.severity.WARN),
	note = ProtoExpert.new("uroce.note", "uroce: what the recording cannot show", expert.group.SEQUENCE, expert.severity.NOTE),
}
uroce.fields = {fields.severity, fields.rule, fields.finding}
uroce.experts = {experts.error, experts.warning, experts.note}

local comments = Field.new("frame.comment")

function uroce.dissector(_, pinfo, tree)
	local rules = {}
	for _, comment in ipairs({comments()}) do
		local severity, rule, sentence = tostring(comment.value):match("^(%l+) (%u[%u%d-]*): (.+)$")
		if experts[severity] then
			local item = tree:add(uroce)
			item:set_text("uroce: " .. severity .. " " .. rule .. ": " .. sentence)
			item:add(fields.severity, severity):set_generated()
			item:add(fields.rule, rule):set_generated()
			item:add(fields.finding, sentence):set_generated()
			item:add_proto_expert_info(experts[severity], rule)
			rules[#rules + 1] = rule
		end
	end
	if #rules > 0 then
		pinfo.cols.info:append("  [" .. table.concat(rules, ", ") .. "]")
	end
end

register_postdissector(uroce)

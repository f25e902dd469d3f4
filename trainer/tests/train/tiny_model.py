"""A chat model of ten thousand weights that GRPO can really teach: each token of its tokenizer is a whole answer.

`python tiny_model.py ANSWERS.json` writes a model into each directory that the file names, with the answers that it
names. With a completion length of 1 every completion is one of them, chosen at random by the untrained model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

MARKS = ["<pad>", "<eos>", "<unk>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|> {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_model(directory: str, answers: Sequence[str], seed: int = 0) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    vocabulary = [*MARKS, *answers]
    tokenizer = Tokenizer(models.WordLevel({text: index for index, text in enumerate(vocabulary)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
    )
    fast.chat_template = CHAT_TEMPLATE
    config = Qwen2Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    Qwen2ForCausalLM(config).save_pretrained(directory)
    fast.save_pretrained(directory)


if __name__ == "__main__":
    for folder, its_answers in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")).items():
        write_model(folder, its_answers)
